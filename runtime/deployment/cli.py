"""Commands ``ptedge promote``, ``ptedge rollback`` and ``ptedge history``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..click_options import BACKEND, JSON, THREADS, TRUST, grouped
from .check import NAMES
from .options import GateOptions

if TYPE_CHECKING:
    from .change import Promotion
    from .history import Entry

PATH = click.Path(path_type=Path)
PLACE = click.Path()  # a folder, or the address of a store
DEPLOYMENT = click.argument("deployment", type=PLACE)
WHY = click.option("--why", default="", metavar="TEXT", help="A word for the history.")
GATE = grouped(
    "gate",
    GateOptions,
    click.option("--frames", metavar="FRAMES", help="Of the place: image, folder, list, video or field folder."),
    click.option(
        "--limit", type=click.IntRange(1), default=64, show_default=True, help="Frames at most, spread over FRAMES."
    ),
    BACKEND,
    THREADS,
    TRUST,
    click.option(
        "--seconds",
        type=click.FloatRange(0),
        default=5.0,
        show_default=True,
        help="Measure the speed of each version for so long; 0: not.",
    ),
    click.option(
        "--max-ms",
        type=click.FloatRange(0, min_open=True),
        help="Milliseconds that nine of ten frames may take.  [default: any]",
    ),
    click.option(
        "--max-ratio",
        type=click.FloatRange(0, min_open=True),
        default=1.25,
        show_default=True,
        help="How many times as long as the running version it may take.",
    ),
    click.option("--labels", type=PATH, metavar="DATA", help="Labelled pictures of the place: compare AP50 on them."),
    click.option(
        "--max-loss",
        type=click.FloatRange(0, 1),
        default=0.05,
        show_default=True,
        help="AP50, or agreement with the mirror image, that it may lose.",
    ),
    click.option(
        "--accept",
        type=click.Choice(NAMES),
        multiple=True,
        help="Let this check fail; again for more. The history keeps it.",
    ),
)


@click.command()
@click.argument("bundle", type=PATH, required=False)
@click.option(
    "--to",
    type=PLACE,
    required=True,
    multiple=True,
    metavar="DEPLOYMENT",
    help="Folder or s3://bucket/place, made when missing; with --from again for more.",
)
@click.option("--from", "source", type=PLACE, metavar="DEPLOYMENT", help="Pass on what runs there, in place of BUNDLE.")
@GATE
@WHY
@click.option("--again", is_flag=True, help="Also a version that was rolled back before.")
@click.option("--unproven", is_flag=True, help="With --from: also a version that is on probation there.")
@click.option("--dry-run", is_flag=True, help="The gate alone.")
@click.option(
    "--keep",
    type=click.IntRange(2),
    default=5,
    show_default=True,
    help="Versions to go back to whose files stay, with the new one.",
)
@JSON
def promote(
    bundle: Path | None,
    to: tuple[str, ...],
    source: str | None,
    gate: GateOptions,
    unproven: bool,
    as_json: bool,
    **rest: Any,
) -> None:
    """Have DEPLOYMENT run BUNDLE, if it passes the gate.

    The gate looks at signature, classes, answers and speed on this machine, beside the version that runs, and compares
    both on the same --frames without labels and on --labels. Whoever runs the deployment (ptedge run DEPLOYMENT ...)
    takes the new version between two frames. A crash or a power loss at any moment leaves the version before or the new
    one, whole.

    With --from, what another deployment runs and a run of it has kept after its probation: the same bytes, without a
    second gate.

    Exit status: 0 when it runs there now, or did before; 1 when a check fails, or one of several deployments refuses.

    \b
    Examples:
      ptedge promote bundle --to deployment --frames field --max-ms 50
      ptedge promote --from canary --to north --to south
    """
    if (bundle is None) == (source is None):
        raise click.UsageError("Give a BUNDLE, or --from a deployment")
    if source is not None:
        if rest.pop("dry_run") or gate != GateOptions(trust=gate.trust):
            raise click.UsageError("--from has no gate: of its options there is --trust alone")
        _pass_on(source, to, gate.trust, unproven, as_json, **rest)
    elif bundle is not None:
        if len(to) > 1 or unproven:
            raise click.UsageError("Several --to, and --unproven, go with --from: a gate is for one deployment")
        _promote(bundle, to[0], gate, as_json, **rest)


def _promote(bundle: Path, to: str, gate: GateOptions, as_json: bool, **rest: Any) -> None:
    """A bundle, through the gate."""
    from ptedge.errors import ArtifactError

    from .change import promote as change
    from .check import failed, to_lines

    done = change(bundle, to, gate, **rest, log=_log)
    if as_json:
        click.echo(json.dumps(_document(to, done), indent=2, ensure_ascii=False))
    elif done.checks:
        click.echo("\n".join(to_lines(done.checks)))
    if wrong := failed(done.checks):
        stays = f"{done.before} stays" if done.before else "nothing was promoted"
        raise ArtifactError(
            f"{bundle} fails {len(wrong)} of {len(done.checks)} checks, first: {wrong[0].name} ({wrong[0].detail}); "
            f"{stays}. --accept {wrong[0].name} lets it through"
        )
    _tell(to, done, dry_run=rest["dry_run"])


def _pass_on(
    source: str, to: tuple[str, ...], trust: tuple[Path, ...], unproven: bool, as_json: bool, **rest: Any
) -> None:
    """What a deployment runs, to others; one that refuses does not keep it from the rest."""
    from ptedge.artifacts.trust import Trust
    from ptedge.errors import OutputError, PtedgeError

    from .channels import pass_on, tried
    from .place import open_deployment

    version = tried(open_deployment(source), Trust.read(trust), unproven)
    promotions, refused = [], []
    for place in to:
        try:
            done = pass_on(version, place, **rest)
        except PtedgeError as error:
            refused.append(place)
            _log(f"{place}: {error}")
            continue
        promotions.append(_document(place, done))
        _tell(place, done)
    if as_json:
        document = {"from": source, "version": version.promotion.version, "promotions": promotions}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    if refused:
        raise OutputError(
            f"{len(refused)} of {len(to)} deployments did not take {version.promotion.version}, first: {refused[0]} "
            "(see above). The same command again goes on"
        )


def _document(to: str, done: Promotion) -> dict[str, Any]:
    from ptedge.config import to_dict

    return {"deployment": to} | to_dict(done) | {"checks": [to_dict(check) for check in done.checks]}


def _tell(to: str, done: Promotion, dry_run: bool = False) -> None:
    if done.promoted:
        _log(f"{to} runs {done.version} (entry {done.number} of its history)")
    elif not dry_run:
        _log(f"{to} runs {done.version} already")


def _log(text: str) -> None:
    click.echo(text, err=True)


@click.command()
@DEPLOYMENT
@click.option("--to", metavar="VERSION", help="Name of a version, or its beginning.  [default: the one before]")
@WHY
def rollback(deployment: str, to: str | None, why: str) -> dict[str, Any]:
    """Have DEPLOYMENT run the version before again.

    \b
    Example:
      ptedge rollback deployment --why "misses vans"
    """
    from .change import rollback as change
    from .place import open_deployment

    made = change(open_deployment(deployment), to=to, why=why)
    click.echo(f"{deployment} runs {made.version} again, no more {made.before}", err=True)
    return {
        "deployment": deployment,
        "version": made.version,
        "before": made.before,
        "number": made.number,
    }


@click.command()
@DEPLOYMENT
def history(deployment: str) -> dict[str, Any]:
    """Tell what ran on DEPLOYMENT when, why, and what the gate said.

    \b
    Example:
      ptedge history deployment --json
    """
    from .history import entry_to_json, state_of
    from .place import open_deployment

    entries = open_deployment(deployment).history()
    state = state_of(entries)
    for entry in entries:
        click.echo(_line(entry))
    click.echo(f"runs {state.version}; a rollback goes to {state.earlier or 'nothing: it is the first'}", err=True)
    return {
        "deployment": deployment,
        "version": state.version,
        "earlier": state.earlier,
        "withdrawn": state.withdrawn,
        "kept": sorted(state.kept),
        "entries": [entry_to_json(entry) for entry in entries],
    }


def _line(entry: Entry) -> str:
    who = "by a run" if entry.automatic else ""
    accepted = [check.name for check in entry.checks if check.accepted]
    origin = f"from {entry.origin}" if entry.origin else ""
    notes = [
        who,
        origin,
        f"accepted: {', '.join(accepted)}" if accepted else "",
        entry.model.get("lineage", ""),
        entry.why,
    ]
    text = f"{entry.number:>4}  {entry.time[:19]}Z  {entry.action:<8}  {entry.version}"
    return "  ".join([text, *filter(None, notes)])
