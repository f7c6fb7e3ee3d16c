"""Estimates as they are kept: a line that ends where nothing was seen, and numbers that are refused."""

import dataclasses
import math

import pytest

from ptedge.artifacts.estimate import LabelFreeEstimate, LabelFreeFit, Ridge
from ptedge.config import from_dict, to_dict
from ptedge.errors import ConfigError

LINE = Ridge(1.0, (2.0, -1.0), (0.0, -1.0), (1.0, 1.0), 0.1, 9)
ONE = Ridge(0.0, (1.0,), (0.0,), (1.0,), 0.1, 9)
ESTIMATE = LabelFreeEstimate(20, 9, 0.5, 0.06, 0.2, 0.05, (0.1, 0.1, 0.2, 0.1), (1.0, 1.5, 2.0, 1.0), ("score",))


def test_predict__by_hand() -> None:
    assert LINE.predict([0.5, 0.25]) == pytest.approx(1 + 2 * 0.5 - 0.25)


def test_predict__takes_the_edge_beyond_what_was_seen() -> None:
    assert LINE.predict([7.0, -9.0]) == pytest.approx(1 + 2 * 1 + 1)
    assert LINE.outside([7.0, 0.0]) and LINE.outside([0.5, -1.1]) and not LINE.outside([1.0, -1.0])


def test_ridge__unequal_lengths_and_infinite_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="of one length"):
        dataclasses.replace(ONE, low=(0.0, 0.0))
    with pytest.raises(ValueError, match="not finite"):
        dataclasses.replace(ONE, error=math.inf)


@pytest.mark.parametrize("change", [{"ap50": 1.2}, {"ap75_error": -0.1}, {"frames": -1}])
def test_estimate__numbers_out_of_range_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="estimate: "):
        dataclasses.replace(ESTIMATE, **change)


def test_fit_and_estimate__survive_as_plain_values() -> None:
    fit = LabelFreeFit(ONE, ONE, ONE, ONE, LINE, LINE, 50, 1200)
    assert from_dict(LabelFreeFit, to_dict(fit), "here") == fit
    assert from_dict(LabelFreeEstimate, to_dict(ESTIMATE), "here") == ESTIMATE
    without = dataclasses.replace(ESTIMATE, scale=None)
    assert from_dict(LabelFreeEstimate, to_dict(without), "here") == without
    with pytest.raises(ConfigError, match="ap50"):
        from_dict(LabelFreeEstimate, to_dict(ESTIMATE) | {"ap50": "high"}, "here")


def test_describe__says_the_error_and_what_lies_beyond() -> None:
    text = ESTIMATE.describe()
    assert "AP50 about 0.50 (error 0.06 on corrupted source images)" in text
    assert text.endswith("beyond what was seen: score")
