"""Commands ``ptedge export``, ``ptedge build`` and ``ptedge verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.conversion import PRECISIONS, Conversion
from ptedge.artifacts.engine_file import PRODUCTS

PATH = click.Path(path_type=Path)
SIGN = click.option("--sign", type=PATH, metavar="KEY", help="Private Ed25519 key to sign with (docs/security.md).")
TRUST = click.option(
    "--trust",
    "keys",
    type=PATH,
    multiple=True,
    metavar="KEY",
    help="Public key that the bundle must be signed with; again for more.",
)


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """(height, width) of ``HxW``; a usage error when it is not two whole numbers."""
    if value is None:
        return None
    height, _, width = value.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise click.BadParameter(f"{value!r} is not height x width in pixels, for example 384x640", ctx, param)
    return int(height), int(width)


def _parse_backends(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names separated by commas; a usage error for one that is none."""
    if value is None:
        return None
    from .verify.backends import BACKENDS

    names = tuple(name.strip() for name in value.split(","))
    if wrong := [name for name in names if name not in BACKENDS]:
        raise click.BadParameter(f"{wrong[0]!r} is none of {', '.join(BACKENDS)}", ctx, param)
    return names


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
    type=click.Choice(PRECISIONS),
    default="fp32",
    show_default=True,
    help="Of the layers before the predictors.",
)
@click.option(
    "--calibrate", metavar="FRAMES", help="Frames of what the device will see, for int8: folder, list, video."
)
@click.option(
    "--int8-error",
    type=click.FloatRange(0, min_open=True),
    metavar="SHARE",
    help="Most that int8 may change the predictors' outputs; more makes more layers int8. Default: 0.015.",
)
@click.option(
    "--split", is_flag=True, help="Two graphs, with the selections left to the runtime; for builders that fail on one."
)
@SIGN
def export(
    checkpoint: Path,
    out: Path,
    size: tuple[int, int] | None,
    batch: int,
    precision: str,
    calibrate: str | None,
    int8_error: float | None,
    split: bool,
    sign: Path | None,
) -> dict[str, Any]:
    """Write CHECKPOINT as an ONNX bundle for the device.

    \b
    Example: ptedge export runs/adapted/model.pt --out bundle
             ptedge export runs/adapted/model.pt --out bundle8 --precision int8 --calibrate frames
    """
    from .api import export as write

    done = write(
        checkpoint,
        out=out,
        size=size,
        batch=batch,
        precision=precision,
        calibrate=calibrate,
        int8_error=int8_error,
        split=split,
        sign=sign,
    )
    if precision != "fp32":
        click.echo(describe_conversion(precision, done.manifest.conversion), err=True)
    height, width = done.manifest.input_size
    graphs = "two graphs, " if split else ""
    click.echo(
        f"{done.bundle}: input {batch} x {height}x{width}, {graphs}{done.operators} operators, "
        f"{done.size / 1e6:.1f} MB. "
        f"Next: ptedge verify {out} --against {checkpoint} --frames FRAMES",
        err=True,
    )
    return {
        "bundle": str(done.bundle),
        "input_size": [height, width],
        "batch": batch,
        "precision": precision,
        "classes": list(done.manifest.class_names),
        "operators": done.operators,
        "bytes": done.size,
        "split": split,
    }


@click.command()
@click.argument("bundle", type=PATH)
@click.option(
    "--backend",
    type=click.Choice(tuple(PRODUCTS)),
    default="tensorrt",
    show_default=True,
    help="tensorrt-rtx builds for RTX cards from Ampere on, also on a machine without a GPU.",
)
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
@click.option("--split", is_flag=True, help="Build two stages, as is done by itself where the one graph is refused.")
@click.option("--timing-cache", type=PATH, help="File of measured kernel times. Default: in the user's cache folder.")
@click.option("--log", type=PATH, help="File for all that TensorRT says while it builds.")
@click.option("--force", is_flag=True, help="Build even if nothing changed.")
@TRUST
@SIGN
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def build(
    bundle: Path,
    backend: str,
    workspace: int,
    optimization_level: int | None,
    tf32: bool,
    version_compatible: bool,
    hardware: str,
    dla: int | None,
    split: bool,
    timing_cache: Path | None,
    log: Path | None,
    force: bool,
    keys: tuple[Path, ...],
    sign: Path | None,
    as_json: bool,
) -> None:
    """Build an engine of BUNDLE for this device, into the bundle: of TensorRT, or of TensorRT-RTX.

    An engine belongs to one TensorRT version and one kind of GPU: run this on the device itself, and again after an
    update. What is there already and still fits is not built again. Where TensorRT refuses the graph, its two stages
    are built apart.

    \b
    Example: ptedge build bundle
             ptedge build bundle --backend tensorrt-rtx
    """
    from ptedge.artifacts.trust import Trust

    from .engine.build import build_engine, default_timing_cache
    from .engine.options import BuildOptions

    options = BuildOptions(workspace, optimization_level, tf32, version_compatible, hardware, dla)
    cache = timing_cache or default_timing_cache()
    record, new = build_engine(
        bundle,
        options,
        backend=backend,
        split=split,
        timing_cache=cache,
        log=log,
        force=force,
        trust=Trust.read(keys),
        sign=sign,
        tell=lambda line: click.echo(line, err=True),
    )
    if as_json:
        from ptedge.config import to_dict

        stages = "one graph" if record.stage == "whole" else "two stages"
        click.echo(json.dumps({"bundle": str(bundle), "new": new, "of": stages, "engine": to_dict(record)}, indent=2))
    how = f"built in {record.seconds:.0f} s" if new else "nothing changed since it was built; --force builds again"
    check = f"ptedge verify {bundle} --backend cpu,{backend} --frames FRAMES"
    half = "" if record.stage == "whole" else " (the first of two stages)"
    click.echo(f"{bundle / record.file}{half}: {how}. Next: {check}", err=True)


@click.command()
@click.argument("bundle", type=PATH)
@click.option(
    "--against",
    type=PATH,
    help="The checkpoint it was exported from; needs torch. Without this option it is looked for beside the bundle.",
)
@click.option("--frames", metavar="FRAMES", help="Real frames to compare on: image, folder, list, video, field folder.")
@click.option("--limit", type=click.IntRange(min=1), default=16, show_default=True, help="At most this many frames.")
@click.option("--data", type=PATH, help="Labelled data: compare AP50, AP75 and coverage of sigma on it as well.")
@click.option("--images", type=click.IntRange(min=1), help="At most this many images of --data.")
@click.option(
    "--backend",
    "backends",
    metavar="LIST",
    callback=_parse_backends,
    help="Of cpu, cuda, tensorrt, tensorrt-rtx, with commas; each must be there. Default: what is there.",
)
@TRUST
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def verify(
    bundle: Path,
    against: Path | None,
    frames: str | None,
    limit: int,
    data: Path | None,
    images: int | None,
    backends: tuple[str, ...] | None,
    keys: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Check that BUNDLE answers as its checkpoint does, on every backend that is there.

    Torch (float32), ONNX Runtime (CPU, CUDA) and the bundle's TensorRT engines run on the same images; boxes are
    matched. Float32 on the CPU must agree within 0.1 pixel, scores and sigma within 0.1 %, near-ties apart; other
    arithmetic has limits of its own, which are printed. After a failure the first layer that departs is named.

    On a device, without torch and onnx, the backends are compared with each other. Exit status: 0 when detections were
    compared and all checks hold; 1 when one does not, or when nothing was compared.

    \b
    Example: ptedge verify bundle --against runs/adapted/model.pt --frames video.mp4 --data val.json
             ptedge verify bundle --backend cpu,tensorrt --frames video.mp4
    """
    from ptedge.artifacts.trust import Trust
    from ptedge.errors import ArtifactError, InputError

    from .verify.check import failed
    from .verify.report import failure, nothing_compared, to_document, to_lines
    from .verify.verify import allowed, verify_bundle

    trust = Trust.read(keys)
    checks, source = verify_bundle(
        bundle, against, frames, limit, data=data, images=images, backends=backends, trust=trust
    )
    if as_json:
        click.echo(json.dumps(to_document(checks, bundle, source, allowed(bundle)), indent=2))
    else:
        click.echo("\n".join([*to_lines(checks), allowed(bundle)]))
    if failed(checks):
        raise ArtifactError(failure(checks, bundle, source))
    if nothing := nothing_compared(checks, bundle):
        raise InputError(nothing)


@click.command()
@click.argument("bundle", type=PATH)
@click.option("--key", type=PATH, required=True, help="Private Ed25519 key (docs/security.md).")
def sign(bundle: Path, key: Path) -> dict[str, Any]:
    """Sign BUNDLE and its engines as they lie there, after a look at what they are.

    For a bundle that was exported without --sign, or calibrated afterwards.

    \b
    Example: ptedge sign bundle --key ~/.ssh/models
    """
    from .sign import sign_all

    lines = sign_all(bundle, key)
    for line in lines:
        click.echo(line, err=True)
    return {"bundle": str(bundle), "signed": lines}


def describe_conversion(precision: str, conversion: Conversion) -> str:
    """One line on what an export converted and kept."""
    share = conversion.share_of_multiplications
    text = f"{precision}: {conversion.converted} layers converted, {share:.0%} of all multiplications"
    if conversion.calibration_frames:
        text += f", calibrated on {conversion.calibration_frames} frames ({conversion.calibration_method})"
        text += f", which changes the predictors' outputs by {conversion.int8_error:.1%}"
    if conversion.kept_float16:
        text += f"; float16 in {_names(conversion.kept_float16)}"
    return f"{text}; float32 in {_names(conversion.kept_float32)}, and in all that follows the predictors"


def _names(layers: tuple[str, ...], at_most: int = 6) -> str:
    """Layers in words; of many, how many (the manifest has them all)."""
    if len(layers) > at_most:
        return f"{len(layers)} others (manifest.json, conversion, names them)"
    return ", ".join(layers)
