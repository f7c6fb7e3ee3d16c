"""The one shape of what a run does: models, data, the losses of a step, what follows it, and what is deployed."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ptedge.artifacts.checkpoint import Checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN

from .losses.equations import Normaliser
from .run_folder import RunFolder
from .watch.supervise import Supervisor


class Given(Protocol):
    """What a part of a step is given: batches of one or more domains."""

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Images that could not be read: (path, reason)."""


B = TypeVar("B", bound=Given)
P = TypeVar("P")


class Task(Protocol[B, P]):
    """Pretraining, or adaptation. B is what a part of a step is given, P the same made ready for its losses.

    Attributes:
        name: shown on the bar.
        identity: what must be the same for a run to go on, plain values by name; kept in last.pt.
        student: the model that is optimised.
        others: modules that are trained beside it.
        images: that a part of a step takes, of all domains, in one process.
    """

    name: str
    identity: Mapping[str, Any]
    student: ProbabilisticFasterRCNN
    others: list[nn.Module]
    images: int

    @property
    def parts(self) -> dict[str, nn.Module]:
        """All that changes or cannot be had again, by its name in last.pt: the ``student`` and what else there is."""

    def start(self, folder: RunFolder, *, resumed: bool) -> None:
        """Make the models what the run begins with; those of :attr:`parts` are restored already when it is resumed."""

    def describe(self) -> list[str]:
        """Lines about the data, for the user."""

    def stream(self, first_step: int) -> Generator[B, None, None]:
        """What the parts of all steps are given, from a step on; closed at the end."""

    def prepare(self, given: B) -> P:
        """What is worked out once a part, however often its losses are."""

    def losses(self, step: int, part: P, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weighted losses of a part of a step, counted from 0, and numbers for the log."""

    def after_step(self) -> None:
        """What follows an update."""

    def checkpoint(self, step: int) -> Checkpoint:
        """What to deploy after so many steps."""

    def supervisor(self, folder: RunFolder, optimizer: torch.optim.Optimizer) -> Supervisor | None:
        """What watches; without one the last state is deployed."""

    def summary(self) -> dict[str, Any]:
        """What summary.json says of the run's inputs."""
