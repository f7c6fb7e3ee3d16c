"""Strategy ``entropy``: classes of things in the frame are in doubt."""

from __future__ import annotations

import numpy as np

from .window import LEAST, Window


def entropy(window: Window) -> float:
    """Class entropy of the candidates scored 0.1 and above, each against the most possible, log(K + 1), summed."""
    found = window.now.candidates
    return float(found.entropy[found.scores >= LEAST].sum() / np.log(window.num_classes + 1))
