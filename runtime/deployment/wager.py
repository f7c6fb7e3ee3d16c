"""A bet against a claim about a mean: wins where the claim is wrong, and may be looked at after every value.

Against "the mean is at most m" a share of the capital is staked on each value being above m. If the claim is true, the
capital grows in no expectation, so that it ever becomes 1 / a has a chance of at most a, however often one looks and
whatever the values depend on, as long as the claim holds for each given those before.

Reference: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024; the bound is
Ville's inequality.
"""

from __future__ import annotations

import math

STAKES = (0.1, 0.25, 0.5, 0.9)  # shares of the largest stake that cannot lose all; the capital is spread over them


class Wager:
    """A bet that the mean of values in [0, 1] is above a limit.

    Attributes:
        values: so far.
    """

    def __init__(self, limit: float) -> None:
        """Begin with a capital of 1.

        Args:
            limit: in (0, 1); the claim is that the mean is at most this.
        """
        self._limit = limit
        self._logs = [0.0] * len(STAKES)  # of the capital on each stake
        self.values = 0

    def add(self, value: float) -> None:
        """Take a value in.

        Args:
            value: in [0, 1].
        """
        self.values += 1
        for i, stake in enumerate(STAKES):
            self._logs[i] += math.log1p(stake / self._limit * (value - self._limit))

    def won(self, error_rate: float) -> bool:
        """Whether the claim is refused.

        Args:
            error_rate: largest chance to refuse it, ever, though it is true.
        """
        top = max(self._logs)
        capital = top + math.log(sum(math.exp(log - top) for log in self._logs) / len(STAKES))
        return capital >= -math.log(error_rate)
