"""What a study is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_study import STUDY

from ptedge.training.study.plan import Row, Sweep, slug


def test_roles_of__what_the_study_names_a_row_for() -> None:
    study = replace(STUDY, source="source", oracle="oracle", beside=("oracle", "adapted"))
    assert study.roles_of("source") == ("source",)
    assert study.roles_of("oracle") == ("oracle", "beside")
    assert study.roles_of("adapted") == ("beside",)
    assert replace(study, source="", beside=()).roles_of("adapted") == ()


@pytest.mark.parametrize(("axis", "value"), [("", 1.0), ("  ", 1.0), ("tau", float("nan")), ("tau", float("-inf"))])
def test_sweep__refuses(axis: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"axis is empty|value is"):
        Sweep(axis, value)


def test_row__refuses() -> None:
    with pytest.raises(ValueError, match="two values on the axis 'tau'"):
        Row("a", "train", sweep=(Sweep("tau", 1.0), Sweep("tau", 2.0)))
    with pytest.raises(ValueError, match="a letter or digit"):
        Row("(...)", "train")
    with pytest.raises(ValueError, match="kind is 'adopt'"):
        Row("a", "adopt")


def test_row__adapts() -> None:
    assert [Row("a", kind).adapts for kind in ("train", "oracle", "adapt", "source_free")] == [False, False, True, True]


def test_slug__is_a_folder_name() -> None:
    assert slug("SF + zoom-out, only (1.0)") == "sf_zoom_out_only_1.0" and slug("..") == ""
