"""What watched over an adaptation, as the model keeps it: whoever promotes the model has its run no more.

Reference: docs/source_free.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptedge.config import require


@dataclass(frozen=True)
class AdaptationRecord:
    """The end of an adaptation, by its monitors, which know no labels.

    Attributes:
        steps: optimiser steps of the run.
        chosen: step of the teacher that is the model; 0 for the model that it began with.
        found_again: objects an image that the model finds again in a disturbed picture, on frames of the target.
        found_again_before: the same, of the model that it began with.
        trips: limits that were crossed, in order; after each but a last ``stop`` the run went on from an earlier state.
        stopped: a guard ended the run.
        without_pseudo_boxes: steps that had no pseudo box to learn from.
    """

    steps: int
    chosen: int
    found_again: float
    found_again_before: float
    trips: tuple[str, ...] = ()
    stopped: bool = False
    without_pseudo_boxes: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "chosen", "found_again", "found_again_before", "without_pseudo_boxes"):
            require(f"adaptation: {name}", getattr(self, name), 0)

    def describe(self) -> str:
        """One line for the terminal."""
        text = (
            f"the model of step {self.chosen} of {self.steps} finds {self.found_again:.2f} objects a frame again, "
            f"{self.found_again_before:.2f} before the adaptation"
        )
        if self.trips:
            text += f"; limits crossed: {', '.join(self.trips)}"
        if self.stopped:
            text += "; a guard ended the run"
        if self.without_pseudo_boxes:
            text += f"; {self.without_pseudo_boxes} steps without a pseudo box"
        return text
