"""Data that a study describes: refused keys, counts, what is off."""

from __future__ import annotations

from pathlib import Path

import pytest
from scored_boxes import make_sample

from ptedge.data.dataset import Dataset
from ptedge.errors import ConfigError
from ptedge.training.study.described import Counted, Described, Official, count_of, differences, take_described

BOX = [0.0, 0.0, 9.0, 9.0]


def test_take_described__takes_the_tables_out() -> None:
    official = {"images": 2, "boxes": {"car": 5, "bus": [1, 3]}, "told_by": "us"}
    values = {"title": "t", "describe": {"val": {"format": "voc", "classes": ["car"], "official": official}}}
    (one,) = take_described(values, "s.toml")
    assert values == {"title": "t"}
    assert (one.part, dict(one.values)) == ("val", {"format": "voc", "classes": ["car"]})
    assert one.official == Official(2, {"car": (5, 5), "bus": (1, 3)}, "us")
    assert take_described({}, "s.toml") == ()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"target": {"format": "voc"}}, "describe.target is no part of the data; there are source, val"),
        ({"val": {"format": "vok"}}, r"s\.toml: describe\.val: format is 'vok'"),
        ({"val": {"format": "voc", "clases": []}}, "did you mean 'classes'"),
        ({"val": {"format": "voc", "official": {"image": 3}}}, r"describe\.val\.official: unknown key 'image'"),
        ({"val": {"format": "voc", "official": 3}}, "official is a table"),
        ({"val": 3}, "describe holds tables"),
    ],
)
def test_take_described__wrong_keys_are_named_with_their_table(tables: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        take_described({"describe": tables}, "s.toml")


def test_count_of__leaves_ignore_regions_out() -> None:
    samples = (make_sample([(BOX, 0, False), (BOX, 0, True), (BOX, -1, True), (BOX, 1, False)]), make_sample([]))
    dataset = Dataset(Path("d"), "voc", ("car", "bus", "van"), samples)
    assert count_of(Described("val", {}), dataset) == Counted("val", 2, {"car": 1, "bus": 1, "van": 0})


def test_off__images_must_be_equal_and_boxes_within_the_limits() -> None:
    official = Official(500, {"car": (4562, 4750), "bus": (98, 98)}, "them")
    assert Counted("val", 500, {"car": 4750, "bus": 98}, official).off == []
    assert Counted("val", 500, {"car": 4562, "bus": 98}, official).off == []
    off = Counted("val", 492, {"car": 4751}, official)
    assert off.off == ["492 images, not 500", "4,751 boxes of car, not 4,562 to 4,750", "0 boxes of bus, not 98"]
    assert differences([off, Counted("source", 3, {})]) == f"val has {', '.join(off.off)} (them)"
    assert Counted("val", 1, {}).off == [] and differences([Counted("val", 1, {})]) == ""
