"""The probation of a new version: it runs, the one before looks over its shoulder, and takes over if it must.

Every few groups the version before is asked about the same frames, once the result is on its way. What it finds there,
and how long it takes, is compared: then neither an empty street nor a busy machine counts against the new version. Its
errors count at once: the frames are answered by the version before, and none is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.graph_contract import IMAGES

from ..slot import Group, LoadedModel, ModelSlot
from .wager import Wager

EVERY = 5  # of so many groups one is compared
ERROR_RATE = 0.001  # of each comparison, over the whole probation
FEWER = 2.0  # finds less than one part in so many
MORE = 4.0  # finds more than so many times as much
SLOWER = 1.5  # takes more than so many times as long
FEWEST = 1e-3  # summed scores of both; below it there is nothing to compare


class Trial:
    """A version on probation.

    Attributes:
        challenger: the new version.
        champion: the one before.
        failed: why it goes back, empty while it does not.
        frames: that the new version answered.
        compared: groups that both answered.
    """

    def __init__(
        self,
        slot: ModelSlot,
        champion: LoadedModel,
        challenger: LoadedModel,
        seconds: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Begin.

        Args:
            slot: that has the new version as its current model.
            champion: the version before.
            challenger: the new version.
            seconds: how long.
            clock: seconds, increasing.
        """
        self.champion, self.challenger = champion, challenger
        self.failed = ""
        self.frames = self.compared = 0
        self._slot, self._seconds, self._clock = slot, seconds, clock
        self._began = clock()
        self._groups = 0
        self._took = 0.0
        self._wagers = {
            f"it finds less than 1/{FEWER:g} of what the version before finds": Wager(FEWER / (1 + FEWER)),
            f"it finds more than {MORE:g} times as much as the version before": Wager(MORE / (1 + MORE)),
            f"it takes more than {SLOWER:g} times as long as the version before": Wager(SLOWER / (1 + SLOWER)),
        }

    @property
    def passed(self) -> bool:
        """The time is over, and nothing spoke against it."""
        return not self.failed and self.compared > 0 and self._clock() - self._began >= self._seconds

    def figures(self) -> dict[str, float]:
        """How much was looked at: seconds, frames, groups compared."""
        seconds = round(self._clock() - self._began, 3)
        return {"seconds": seconds, "frames": self.frames, "compared": self.compared}

    def describe(self) -> str:
        """The same in words."""
        figures = self.figures()
        return f"{figures['seconds']:.0f} s, {self.frames} frames, {self.compared} groups of them compared"

    def answer(self, group: Group) -> Mapping[str, NDArray[Any]]:
        """Run a group that was prepared for the new version; on the thread that runs models.

        Raises:
            PtedgeError: of the version before, where the new one failed.
        """
        if not self.failed:
            start = self._clock()
            try:
                outputs = self.challenger.predictor.runner.infer({IMAGES: group.array})
                self._took = self._clock() - start
                group.found = self.challenger.predictor.postprocess(outputs, group.letterboxes)
            except Exception as error:
                self.fail(f"error: {error}")
            else:
                self.frames += len(group.found)
                return outputs
        self._slot.hand_over(group, self.champion, self.champion.predictor.detect_batch(group.images))
        return {}

    def after(self, group: Group) -> None:
        """Compare, where it is time to; the group's result is on its way already."""
        self._groups += 1
        if self.failed or group.found is None or group.model is not self.challenger or self._groups % EVERY:
            return
        predictor = self.champion.predictor
        unconverged = predictor.unconverged
        found: list[Detections] = []
        took = 0.0
        for start in range(0, len(group.images), predictor.batch):
            array, letterboxes = predictor.preprocess(group.images[start : start + predictor.batch])
            began = self._clock()
            outputs = predictor.runner.infer({IMAGES: array})
            took += self._clock() - began
            found += predictor.postprocess(outputs, letterboxes)
        predictor.unconverged = unconverged  # these results are not of the run
        self.compare(group.found, self._took, found, took)

    def compare(self, new: Sequence[Detections], new_took: float, old: Sequence[Detections], old_took: float) -> None:
        """Bet on what both found in the same frames, and how long they took.

        Args:
            new: of the new version, one a frame, and
            new_took: seconds of its call.
            old: of the version before, and
            old_took: seconds.
        """
        self.compared += 1
        fewer, more, slower = self._wagers.values()
        many, few = _summed_score(new), _summed_score(old)
        if many + few >= FEWEST:
            fewer.add(few / (many + few))
            more.add(many / (many + few))
        if new_took + old_took > 0:
            slower.add(new_took / (new_took + old_took))
        for why, wager in self._wagers.items():
            if wager.won(ERROR_RATE):
                self.fail(f"{why} ({wager.values} groups compared)")
                return

    def fail(self, why: str) -> None:
        """Go back: the next group is prepared for the version before."""
        self.failed = why
        self._slot.switch(self.champion)


def _summed_score(found: Sequence[Detections]) -> float:
    """How many objects the scores speak of; a collapse of scores shows as well as one of boxes."""
    return float(sum(detections.scores.sum() for detections in found))
