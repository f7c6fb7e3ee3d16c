"""Commands ``ptedge export``, ``ptedge build`` and ``ptedge verify``."""

from __future__ import annotations

import json
from pathlib import Path

import click

PATH = click.Path(path_type=Path)


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """(height, width) of ``HxW``; a usage error when it is not two whole numbers."""
    if value is None:
        return None
    height, _, width = value.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise click.BadParameter(f"{value!r} is not height x width in pixels, for example 384x640", ctx, param)
    return int(height), int(width)


@click.command()
@click.argument("checkpoint", type=PATH)
@click.option("--out", type=PATH, required=True, help="Bundle folder to write.")
@click.option(
    "--size",
    metavar="HxW",
    callback=_parse_size,
    help="Network input, height x width; multiples of 16. Default: as trained.",
)
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Images a call of the graph.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    show_default=True,
    help="Of the weights.",
)
@click.option("--calibrate", metavar="FRAMES", help="Frames to calibrate int8 with.")
def export(
    checkpoint: Path, out: Path, size: tuple[int, int] | None, batch: int, precision: str, calibrate: str | None
) -> None:
    """Write CHECKPOINT as an ONNX bundle for the device.

    \b
    Example: ptedge export runs/adapted/model.pt --out bundle
    """
    from ptedge.errors import InputError

    from .to_onnx import export_checkpoint

    if calibrate is not None and precision != "int8":
        raise InputError("--calibrate belongs to --precision int8; leave it out")
    bundle, report = export_checkpoint(checkpoint, out, input_size=size, batch=batch, precision=precision)
    height, width = bundle.manifest.input_size
    click.echo(
        f"{bundle.path}: input {batch} x {height}x{width}, {report.nodes} operators, {report.size / 1e6:.1f} MB. "
        f"Next: ptedge verify {out} --against {checkpoint}",
        err=True,
    )


@click.command()
@click.argument("bundle", type=PATH)
@click.option(
    "--workspace",
    type=click.IntRange(min=0),
    default=4096,
    show_default=True,
    help="Scratch memory, MiB; 0 for no limit.",
)
@click.option(
    "--optimization-level", type=click.IntRange(0, 5), help="Higher searches longer (TensorRT 8.6 and later)."
)
@click.option("--tf32", is_flag=True, help="Let float32 products be rounded to 10 bits: faster, less exact.")
@click.option("--version-compatible", is_flag=True, help="Also run with later minor versions (8.6 and later).")
@click.option(
    "--hardware",
    type=click.Choice(["none", "ampere_plus"]),
    default="none",
    show_default=True,
    help="Run on other GPUs too, slower (8.6 and later).",
)
@click.option("--dla", type=click.IntRange(min=0), help="Deep learning accelerator core; the rest runs on the GPU.")
@click.option("--timing-cache", type=PATH, help="File of measured kernel times. Default: in the user's cache folder.")
@click.option("--force", is_flag=True, help="Build even if nothing changed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def build(
    bundle: Path,
    workspace: int,
    optimization_level: int | None,
    tf32: bool,
    version_compatible: bool,
    hardware: str,
    dla: int | None,
    timing_cache: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Build a TensorRT engine of BUNDLE for this device, into the bundle.

    An engine belongs to one TensorRT version and one kind of GPU: run this on the device itself, and again after an
    update. What is there already and still fits is not built again.

    \b
    Example: ptedge build bundle
    """
    from .engine import build_engine, default_timing_cache
    from .engine_worker import BuildOptions

    options = BuildOptions(workspace, optimization_level, tf32, version_compatible, hardware, dla)
    cache = timing_cache or default_timing_cache()
    record, new = build_engine(
        bundle, options, timing_cache=cache, force=force, tell=lambda line: click.echo(line, err=True)
    )
    if as_json:
        from ptedge.config import to_dict

        click.echo(json.dumps({"bundle": str(bundle), "new": new, "engine": to_dict(record)}, indent=2))
    how = f"built in {record.seconds:.0f} s" if new else "nothing changed since it was built; --force builds again"
    click.echo(f"{bundle / record.file}: {how}. Next: ptedge verify {bundle} --backend tensorrt", err=True)


@click.command()
@click.argument("bundle", type=PATH)
@click.option("--against", type=PATH, help="The checkpoint it was exported from; looked for beside it when not given.")
@click.option("--frames", metavar="FRAMES", help="Real frames to compare on: image, folder, list, video, field folder.")
@click.option("--limit", type=click.IntRange(min=1), default=16, show_default=True, help="At most this many frames.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def verify(bundle: Path, against: Path | None, frames: str | None, limit: int, as_json: bool) -> None:
    """Check that BUNDLE answers as its checkpoint does.

    Torch and ONNX Runtime run on the same images; boxes are matched and must agree within 0.1 pixel, scores and sigma
    within 0.1 %. A detection that hangs on a near-tie is reported as borderline.

    \b
    Example: ptedge verify bundle --against runs/adapted/model.pt --frames video.mp4
    """
    from ptedge.errors import ArtifactError

    from .verify import failed, verify_bundle

    checks, source = verify_bundle(bundle, against, frames, limit)
    bad = failed(checks)
    if as_json:
        rows = [{"check": c.name, "passed": c.passed, "detail": c.detail} for c in checks]
        document = {
            "bundle": str(bundle),
            "against": str(source) if source else None,
            "passed": not bad,
            "checks": rows,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name:{width}}  {check.detail}")
    if source is None:
        click.echo(
            "no checkpoint beside the bundle matches its lineage; to compare, give --against CHECKPOINT", err=True
        )
    if bad:
        raise ArtifactError(
            f"{bundle} fails {len(bad)} of {len(checks)} checks, first: {bad[0].name} ({bad[0].detail}). "
            f"Write it again: ptedge export {source or 'CHECKPOINT'} --out {bundle}"
        )
