"""``ptedge.export``: what ``ptedge export`` does, for the command and for Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptedge.errors import named_extras
from ptedge.verbosity import quiet as silence

if TYPE_CHECKING:
    from ptedge.artifacts.manifest import Manifest

PathName = str | PathLike[str]


@dataclass(frozen=True)
class Exported:
    """A bundle that was written.

    Attributes:
        bundle: its folder, for ``ptedge.load`` and the device.
        manifest: what it says about the model.
        operators: nodes of the graph, or of both stages.
        size: bytes of it.
    """

    bundle: Path
    manifest: Manifest = field(repr=False)
    operators: int
    size: int


def export(
    checkpoint: PathName,
    *,
    out: PathName,
    size: tuple[int, int] | None = None,
    batch: int = 1,
    precision: str = "fp32",
    calibrate: PathName | None = None,
    int8_error: float | None = None,
    split: bool = False,
    sign: PathName | None = None,
    quiet: bool = False,
) -> Exported:
    """Write a checkpoint as an ONNX bundle for the device, as ``ptedge export`` does.

    Args:
        checkpoint: ``model.pt`` of train or adapt.
        out: bundle folder to write.
        size: (height, width) of the network's input in pixels, multiples of 16; ``None``: as trained.
        batch: images a call of the graph.
        precision: ``fp32``, ``fp16`` or ``int8``, of the layers before the predictors.
        calibrate: frames of what the device will see, for int8: folder, list or video.
        int8_error: most that int8 may change the predictors' outputs; ``None`` for 0.015.
        split: write two graphs in place of one, with the selections between and behind them left to the runtime.
        sign: private Ed25519 key to sign with.
        quiet: tell nothing on stderr.

    Raises:
        PtedgeError: see the error tree.
    """
    with named_extras(), silence(quiet):
        from .to_bundle import export_checkpoint

        bundle, report = export_checkpoint(
            Path(checkpoint),
            Path(out),
            input_size=size,
            batch=batch,
            precision=precision,
            calibrate=None if calibrate is None else str(calibrate),
            int8_error=int8_error,
            split=split,
            sign=None if sign is None else Path(sign),
            tell=lambda line: click.echo(line, err=True),
        )
    return Exported(bundle.path, bundle.manifest, report.nodes, report.size)
