"""Strategy ``drift``: the frame is unlike what came before it, in what was found or in its light."""

from __future__ import annotations

import math

from .window import Window

MEMORY = 500  # frames after which an old one weighs 1/e
LEAST_SPREAD = 1e-3  # of a quantity that never changed


class Drift:
    """Running means and spreads of five quantities of a frame, and how far a frame is from them.

    The quantities: objects (root of their number), mean score and mean entropy of the candidates, brightness, contrast.
    """

    def __init__(self) -> None:
        self._means: dict[str, float] = {}
        self._squares: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, window: Window) -> float:
        """Largest distance of a quantity from its running mean, in its standard deviations; then it is taken in."""
        far = 0.0
        for name, value in _quantities(window).items():
            mean, count = self._means.get(name, value), self._counts.get(name, 0)
            spread = math.sqrt(max(self._squares.get(name, 0.0), LEAST_SPREAD**2))
            far = max(far, abs(value - mean) / spread if count else 0.0)
            weight = max(1 / (count + 1), 1 / MEMORY)
            self._means[name] = mean + weight * (value - mean)
            self._squares[name] = (1 - weight) * (self._squares.get(name, 0.0) + weight * (value - mean) ** 2)
            self._counts[name] = count + 1
        return far


def _quantities(window: Window) -> dict[str, float]:
    look = window.now
    brightness, contrast = look.light
    values = {"objects": math.sqrt(len(look.objects)), "brightness": brightness, "contrast": contrast}
    if len(look.candidates):  # a frame without any has no score
        values["score"] = float(look.candidates.scores.mean())
        values["entropy"] = float(look.candidates.entropy.mean())
    return values
