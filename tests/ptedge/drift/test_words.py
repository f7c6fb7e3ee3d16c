from __future__ import annotations

from ptedge.drift.measures import OF_CLASS, PARTS, PICTURE, measure_names, split_name
from ptedge.drift.reference import LEAST_SPREAD
from ptedge.drift.windows import Moved
from ptedge.drift.words import SAID, advice, describe, to_json


def moved(name: str, side: str = "low") -> Moved:
    return Moved(name, side, 0.9, 0.12345678, (0.5, 0.75))


def test_describe__in_plain_words() -> None:
    assert (
        describe(moved("score:1"), ("car", "bus")) == "scores of bus are lower: 0.123 on average, usual is 0.5 to 0.75"
    )
    assert describe(moved("light:4", "high"), ()).startswith("the middle far left of the picture is brighter beside")
    assert describe(moved("sharpness"), ()).startswith("pictures are less sharp: ")


def test_said__of_every_measure() -> None:
    assert set(SAID) == set(LEAST_SPREAD) == {*PICTURE, *PARTS, *OF_CLASS}
    for name in measure_names(1):
        assert "{}" not in describe(moved(name), ("car",))


def test_to_json__by_hand() -> None:
    assert to_json(moved("score:0"), ("car",)) == {
        "measure": "score",
        "of": "car",
        "side": "low",
        "now": 0.1235,
        "usual": [0.5, 0.75],
        "share": 0.9,
        "text": describe(moved("score:0"), ("car",)),
    }
    assert to_json(moved("contrast"), ())["of"] is None


def test_advice__the_camera_only_where_pictures_moved() -> None:
    assert advice([]) == ""
    assert "camera" in advice([moved("light:3"), moved("score:0")]).lower()
    assert "lens" not in advice([moved("score:0")])
    assert split_name("score:0") == ("score", 0)
