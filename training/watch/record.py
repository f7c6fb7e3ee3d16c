"""What watched over a run, into the files of its models: who promotes one looks at that (docs/deployments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint

from ..run_folder import RunFolder
from .limits import found_again


def record_of(supervision: Mapping[str, Any], steps: int, teacher: str = "chosen") -> AdaptationRecord:
    """The end of a run, in short.

    Args:
        supervision: of :meth:`~ptedge.training.watch.supervise.Supervisor.summary`.
        steps: that the run did.
        teacher: ``chosen`` or ``last``.
    """
    chosen = supervision[teacher]
    return AdaptationRecord(
        steps=steps,
        chosen=chosen["step"],
        found_again=round(found_again(chosen["signals"]), 4),
        found_again_before=round(found_again(supervision["start"]["signals"]), 4),
        trips=tuple(trip["name"] for trip in supervision["guards"]),
        stopped=supervision["stopped_by_guard"],
        without_pseudo_boxes=supervision["steps_without_pseudo_boxes"],
    )


def keep_records(folder: RunFolder, supervision: Mapping[str, Any], steps: int) -> None:
    """Write the record of a run into model.pt and last_model.pt.

    Args:
        folder: of the run, at its end.
        supervision: see :func:`record_of`.
        steps: that the run did.

    Raises:
        OutputError: not writable.
    """
    for model, teacher in ((folder.model, "chosen"), (folder.last_model, "last")):
        record = record_of(supervision, steps, teacher)
        save_checkpoint(model, replace(load_checkpoint(model), adaptation=record))
