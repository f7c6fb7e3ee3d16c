"""The model that a pipeline asks. It may be exchanged for another between two groups of frames.

A group is prepared for one model and keeps it to the end, so that input size and batch may differ; a model is closed
only when no group needs it any more.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.detections import Detections
from ptedge.frames.source import Frame
from ptedge.graph_contract import IMAGES
from ptedge.preprocess import Letterbox

POLL = 0.02  # seconds between two looks whether a model is still needed
LEAVE = 10.0  # seconds that its last groups get


@dataclass(eq=False)
class LoadedModel:
    """A model that is ready.

    Attributes:
        predictor: it.
        version: its name in a deployment; ``None`` outside one.
        groups: of frames that need it now.
    """

    predictor: BundlePredictor
    version: str | None = None
    groups: int = 0


@dataclass
class Group:
    """Frames of one call of the graph.

    Attributes:
        taken: (source, (frame, arrival)) of each.
        model: that they are prepared for.
        array: the network input made of them.
        letterboxes: one a frame.
        found: detections, one a frame, where they are known before postprocessing.
    """

    taken: list[tuple[int, tuple[Frame, float]]]
    model: LoadedModel
    array: NDArray[np.uint8]
    letterboxes: list[Letterbox]
    found: list[Detections] | None = field(default=None)

    @property
    def images(self) -> list[NDArray[np.uint8]]:
        """The pictures, each [height, width, 3]."""
        return [frame.image for _, (frame, _) in self.taken]

    def detections(self, outputs: Mapping[str, NDArray[Any]]) -> list[Detections]:
        """What the model found, one a frame.

        Args:
            outputs: of the graph; not looked at where :attr:`found` is there.
        """
        return self.found if self.found is not None else self.model.predictor.postprocess(outputs, self.letterboxes)


class OnTrial(Protocol):
    """A model on probation: asked instead of it, see :class:`ptedge.runtime.deployment.trial.Trial`."""

    @property
    def challenger(self) -> LoadedModel:
        """The model."""
        ...

    def answer(self, group: Group) -> Mapping[str, NDArray[Any]]:
        """Run a group that was prepared for it."""
        ...

    def after(self, group: Group) -> None:
        """Look at a group that was answered and handed on."""
        ...


class ModelSlot:
    """Holds the model that groups are prepared for from now on.

    Attributes:
        current: that model.
        trial: of a model that is on probation; ``None`` for none.
    """

    def __init__(self, model: LoadedModel) -> None:
        """Begin with a model.

        Args:
            model: ready.
        """
        self.current = model
        self.trial: OnTrial | None = None
        self._all = [model]
        self._lock = threading.Lock()

    @property
    def predictor(self) -> BundlePredictor:
        """Of the current model."""
        return self.current.predictor

    @property
    def unconverged(self) -> int:
        """Images so far whose suppression stopped early, by all models."""
        return sum(model.predictor.unconverged for model in self._all)

    def add(self, model: LoadedModel) -> None:
        """Take another model in; it is used by :meth:`switch` only."""
        with self._lock:
            self._all.append(model)

    def switch(self, model: LoadedModel) -> None:
        """Prepare groups for another model from now on."""
        with self._lock:
            self.current = model

    def prepare(self, taken: list[tuple[int, tuple[Frame, float]]], model: LoadedModel) -> Group:
        """A group for a model, which it holds until :meth:`done`.

        Args:
            taken: at most as many frames as the model takes in a call.
            model: for this one.
        """
        with self._lock:
            model.groups += 1
        return Group(taken, model, *model.predictor.preprocess([frame.image for _, (frame, _) in taken]))

    def answer(self, group: Group) -> Mapping[str, NDArray[Any]]:
        """Run the graph on a group; on the thread that runs models."""
        trial = self.trial
        if trial is not None and group.model is trial.challenger:
            return trial.answer(group)
        return group.model.predictor.runner.infer({IMAGES: group.array})

    def after(self, group: Group) -> None:
        """Called when an answered group was handed on; on the thread that runs models."""
        trial = self.trial
        if trial is not None:
            trial.after(group)

    def hand_over(self, group: Group, model: LoadedModel, found: list[Detections]) -> None:
        """Give a group to another model, which answered it.

        Args:
            group: prepared for a model that failed.
            model: that answered.
            found: its answer, one a frame.
        """
        with self._lock:
            group.model.groups -= 1
            model.groups += 1
        group.model, group.found = model, found

    def done(self, group: Group) -> None:
        """The group needs its model no more."""
        with self._lock:
            group.model.groups -= 1

    def retire(self, model: LoadedModel, seconds: float = LEAVE) -> bool:
        """Close a model that is not the current one, once the groups that need it are through.

        Args:
            model: that was current, or never was.
            seconds: to wait at most; it then stays until the end.

        Returns:
            Whether it is closed.
        """
        end = time.monotonic() + seconds
        while model.groups and time.monotonic() < end:
            time.sleep(POLL)
        with self._lock:
            if model.groups or model is self.current:
                return False
        model.predictor.close()
        return True

    def close(self) -> None:
        """Free all models."""
        for model in self._all:
            with contextlib.suppress(Exception):  # of one that failed before
                model.predictor.close()
