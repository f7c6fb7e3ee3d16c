"""``ptedge drift``: whether frames look as those that a model was made for; or learn what they look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.bundle import is_bundle, open_bundle
from ptedge.artifacts.bundle_reference import write_reference
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.commands.model_options import BACKEND, JSON, THREADS, TRUST
from ptedge.drift.compare import compare_frames
from ptedge.drift.measures import FloatArray, measure_frame
from ptedge.drift.reference import MOST_FRAMES, Reference, summarise
from ptedge.drift.words import advice, to_json
from ptedge.errors import InputError
from ptedge.folders import set_file_aside
from ptedge.frames.source import FrameIndex, index_frames

PATH = click.Path(path_type=Path)


@click.command(short_help="Tell whether frames look as those a model was made for.")
@click.argument("model", type=PATH)
@click.argument("frames")
@click.option("--learn", is_flag=True, help="Take FRAMES for what is usual from now on, instead of judging them.")
@click.option("--out", type=PATH, help="With --learn, for a checkpoint: file to write. A bundle is changed itself.")
@click.option(
    "--limit", type=click.IntRange(1), default=MOST_FRAMES, show_default=True, help="At most so many, evenly spaced."
)
@BACKEND
@THREADS
@TRUST
@click.option("--sign", type=PATH, metavar="KEY", help="With --learn: private key to sign the bundle with again.")
@JSON
def drift(
    model: Path,
    frames: str,
    learn: bool,
    out: Path | None,
    limit: int,
    backend: str,
    threads: int | None,
    keys: tuple[Path, ...],
    sign: Path | None,
    as_json: bool,
) -> None:
    """Tell whether FRAMES (folder, list, video, store) look as those that MODEL was made for. Needs no labels.

    MODEL is a bundle or a checkpoint. train and adapt keep in it what pictures and detections were like where they
    ended; ptedge run watches its stream against that by itself. --learn measures it anew, on a device too.

    \b
    Examples:
      ptedge drift bundle field
      ptedge drift bundle yesterday/ --learn
    """
    write = _writer(model, out, keys, sign) if learn else None
    found = index_frames(frames)
    predictor = open_predictor(model, backend=backend, threads=threads, trust=Trust.read(keys))
    try:
        known = None if learn else _reference_of(model, predictor)
        measured = _measure(predictor, found, limit)
        about: dict[str, Any] = {"model": str(model), "model_hash": predictor.model_hash, "frames": len(measured)}
        size, names = predictor.input_size, predictor.class_names
    finally:
        predictor.close()
    if write is not None:
        known = summarise(measured, size, "given")
        click.echo(f"wrote {write(known)}: what is usual is that of {known.describe()}", err=True)
        document = {**about, "learned": True, "reference": known.describe(), "found": False, "moved": []}
    else:
        assert known is not None
        compared = compare_frames(measured, known)
        moved = [to_json(one, names) for one in compared.moved]
        document = {**about, "learned": False, "reference": known.describe(), "found": bool(moved), "moved": moved}
        document["advice"] = advice(compared.moved)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else format_report(document))


def format_report(document: dict[str, Any]) -> str:
    """The result as text.

    Args:
        document: what ``--json`` prints.
    """
    lines = [f"{document['frames']} frames, against {document['reference']}"]
    if document["learned"]:
        return lines[0]
    lines += [entry["text"] for entry in document["moved"]]
    lines.append(document["advice"] or "nothing moved that chance would not move")
    return "\n".join(lines)


def _reference_of(model: Path, predictor: Predictor) -> Reference:
    if isinstance(predictor, BundlePredictor):
        known = predictor.manifest.reference
    else:
        from ptedge.artifacts.checkpoint import load_checkpoint  # needs torch

        known = load_checkpoint(model).reference
    if known is None:
        raise InputError(
            f"{model} does not say what frames looked like where it was made. Let it learn that from frames of the "
            f"place it works well in: ptedge drift {model} FRAMES --learn"
        )
    return known


def _writer(model: Path, out: Path | None, keys: tuple[Path, ...], sign: Path | None) -> Callable[[Reference], Path]:
    """What writes a reference where it belongs, checked before the long work.

    Raises:
        InputError: an ONNX file alone; a checkpoint without ``out``, or a bundle with it.
    """
    if is_bundle(model):
        if out is not None:
            raise InputError(f"{model} is a bundle, which learns where it lies. Copy it first, and leave out --out")
        key = read_signing_key(sign) if sign is not None else None
        bundle = open_bundle(model, Trust.read(keys))
        if bundle.path == bundle.model_path:
            raise InputError(f"{model} is an ONNX file; a reference goes into a bundle folder. Give the folder")

        def into_bundle(reference: Reference) -> Path:
            write_reference(bundle, reference, key)
            return model

        return into_bundle
    if out is None:
        raise InputError(f"{model} is no bundle folder; a checkpoint that learned is written to a file: give --out")

    def into_checkpoint(reference: Reference) -> Path:
        from dataclasses import replace

        from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint

        checkpoint = replace(load_checkpoint(model), reference=reference)
        set_file_aside(out)
        save_checkpoint(out, checkpoint)
        return out

    return into_checkpoint


def _measure(predictor: Predictor, frames: FrameIndex, limit: int) -> list[dict[str, FloatArray]]:
    """Measures of evenly spaced frames."""
    size, classes = predictor.input_size, len(predictor.class_names)
    return [measure_frame(image, predictor.detect(image), size, classes) for image in frames.spaced(limit)]


__all__ = ["drift", "format_report"]
