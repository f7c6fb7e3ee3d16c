"""``ptedge loop``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("file", metavar="SITE.toml", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Tell what would be done, and why; nothing is written or fetched.")
@click.option("--status", is_flag=True, help="Tell where the round stands.")
@click.option("--give-up", metavar="WHY", help="End the round that is at work; its frames are not used again.")
def loop(file: Path, dry_run: bool, status: bool, give_up: str | None) -> dict[str, Any]:
    """One round for a site: fetch frames, decide, adapt, gate, canary, and everywhere.

    For cron, a timer, a Kubernetes Job, or by hand: each call goes on as far as it comes and ends. What is done has a
    record in rounds/NNNN/ of the site's folder and is not done again; interrupted, the same command goes on.

    Exit status: 0 also where the round waits, or ended because something was refused; 1 where a step could not be done.

    \b
    Examples:
      ptedge loop gate-2.toml
      ptedge loop gate-2.toml --dry-run
    """
    from .look import look
    from .rounds import current_round, rounds_of
    from .run import describe, run_round
    from .run import give_up as end
    from .settings import read_site

    if sum((dry_run, status, give_up is not None)) > 1:
        raise click.UsageError("give one of --dry-run, --status and --give-up")
    place = read_site(file)
    if give_up is not None:
        document = end(place, give_up)
    elif dry_run:
        document = look(place)
        click.echo(f"round {document['round']} would {document['would']}")
    elif status:
        rounds = rounds_of(place.folder)
        document = describe(place, rounds[-1] if rounds else current_round(place.folder), [])
        for step in document["steps"]:
            click.echo(f"{step['step']:<9} {step['state']:<8} {step['seconds']:>8.1f} s  {step['why']}")
    else:
        document = run_round(place, partial(click.echo, err=True))
    click.echo(f"round {document['round']}: {document['state']}: {document['why']}", err=True)
    return document
