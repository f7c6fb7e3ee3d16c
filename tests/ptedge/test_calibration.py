"""What a calibration may hold."""

from __future__ import annotations

import json
import math

import pytest

from ptedge.calibration import MOST_OFFSET, CalibrationOrigin, SideCalibration, Sides
from ptedge.config import from_dict, to_dict


def test_side_calibration__plain_values_and_back() -> None:
    origin = CalibrationOrigin("label_free", boxes=7, images=3, data="aa", model="bb")
    given = SideCalibration((0.1, 0.0, -0.1, 0.0), (2.0, 1.0, 1.0, 0.5), {"0.9": (1.0, 2.0, 3.0, 4.0)}, origin)
    assert from_dict(SideCalibration, json.loads(json.dumps(to_dict(given))), "here") == given


def test_side_calibration__none_corrects_nothing() -> None:
    assert (SideCalibration().offset, SideCalibration().scale) == ((0, 0, 0, 0), (1, 1, 1, 1))


@pytest.mark.parametrize("wrong", [MOST_OFFSET + 0.01, -MOST_OFFSET - 0.01, math.nan, math.inf])
def test_side_calibration__refuses_an_offset(wrong: float) -> None:
    with pytest.raises(ValueError, match="side_offset is"):
        SideCalibration(offset=(0.0, wrong, 0.0, 0.0))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_side_calibration__refuses_a_scale_and_a_factor(wrong: float) -> None:
    values: Sides = (1.0, 1.0, 1.0, wrong)
    with pytest.raises(ValueError, match="sigma_scale is"):
        SideCalibration(scale=values)
    with pytest.raises(ValueError, match=r"intervals of 0\.5 is"):
        SideCalibration(intervals={"0.5": values})


def test_side_calibration__nothing_of_sigma_is_no_scale_but_may_be_an_interval() -> None:
    nothing: Sides = (0.0, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="sigma_scale is 0"):
        SideCalibration(scale=nothing)
    assert SideCalibration(intervals={"0.5": nothing}).intervals["0.5"] == nothing


@pytest.mark.parametrize("coverage", ["0", "1", "90", "nan", "most"])
def test_side_calibration__refuses_a_coverage(coverage: str) -> None:
    with pytest.raises(ValueError, match="coverage"):
        SideCalibration(intervals={coverage: (1.0, 1.0, 1.0, 1.0)})


def test_calibration_origin__refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="labels, label_free"):
        CalibrationOrigin(how="guessed")
    with pytest.raises(ValueError, match="boxes is -1"):
        CalibrationOrigin(boxes=-1)
