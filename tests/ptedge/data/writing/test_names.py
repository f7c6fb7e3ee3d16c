"""Names of images and classes that every reader finds again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ptedge.data import Sample
from ptedge.data.writing.names import RENAMED, image_names, one_word_classes
from ptedge.errors import InputError


def samples(*names: str) -> list[Sample]:
    none = np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return [Sample(Path("/data/set") / name, 9, 9, *none, name) for name in names]


@pytest.mark.parametrize(
    ("given", "expected", "renamed"),
    [
        (("a.jpg", "b.png"), ["a.jpg", "b.png"], 0),
        (("x/a.jpg", "x/b.png"), ["a.jpg", "b.png"], 0),  # below the folder they share
        (("x/a.jpg", "y/a.jpg"), ["x/a.jpg", "y/a.jpg"], 0),
        (("a.jpg", "a.png", "A.jpg"), ["a.jpg", "a-2.png", "A-3.jpg"], 2),
        (("é.jpg", "e\u0301.jpg"), ["é.jpg", "e\u0301-2.jpg"], 1),
        ((".a.jpg", "b/.c/d.jpg"), ["_.a.jpg", "b/_.c/d.jpg"], 2),
        (("a\\b.jpg", "a\nb.jpg", " a.jpg", "\udcff.jpg"), ["a_b.jpg", "a_b-2.jpg", "a.jpg", "_.jpg"], 4),
    ],
)
def test_image_names(given: tuple[str, ...], expected: list[str], renamed: int) -> None:
    notes: Counter[str] = Counter()
    assert image_names(samples(*given), lambda name: name, notes) == expected
    assert notes[RENAMED] == renamed


def test_image_names__a_suffix_of_no_image() -> None:
    with pytest.raises(InputError, match=r"/data/set/a\.bin has no suffix of an image file"):
        image_names(samples("a.bin"), lambda name: name, Counter())


def test_one_word_classes() -> None:
    notes: Counter[str] = Counter()
    names = ["car", "traffic light", "traffic_light", "DontCare", "1e3", "a\tb"]
    words = ["car", "traffic_light", "class_traffic_light", "class_DontCare", "class_1e3", "a_b"]
    assert one_word_classes(names, "DontCare", notes) == words
    assert sum(notes.values()) == 5
