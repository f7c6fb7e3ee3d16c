"""Where weights come from: what checkpoints and bundles record of their ancestry."""

from __future__ import annotations

from dataclasses import dataclass

from ptedge import __version__
from ptedge.config import require_one_of

KINDS = ("source", "adapted", "source_free", "few_labels")


@dataclass(frozen=True)
class Lineage:
    """Ancestry of a set of weights.

    Attributes:
        kind: ``source`` (trained on labels), ``adapted`` (with source), ``source_free``, or ``few_labels`` (with some
            labelled frames of the target, with source or without).
        role: ``teacher`` or ``student``.
        checkpoint: sha256 of the checkpoint a bundle was exported from; empty in the checkpoint itself.
        parents: sha256 of the checkpoints it was trained from, oldest first.
        step: optimiser steps of the last run.
        data: what the last run was trained on, by name.
        ptedge: version that wrote it.
    """

    kind: str = "source"
    role: str = "student"
    checkpoint: str = ""
    parents: tuple[str, ...] = ()
    step: int = 0
    data: tuple[str, ...] = ()
    ptedge: str = __version__

    def __post_init__(self) -> None:
        require_one_of("lineage.kind", self.kind, KINDS)
        require_one_of("lineage.role", self.role, ("teacher", "student"))
