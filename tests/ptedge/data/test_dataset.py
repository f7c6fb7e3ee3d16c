"""Some images of a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import InputError


def made(count: int) -> Dataset:
    nothing = (np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, bool))
    return Dataset(Path("d"), "coco", ("car",), tuple(Sample(Path(f"{i}"), 1, 1, *nothing, i) for i in range(count)))


def test_drawn__the_same_by_seed_and_fewer_are_among_more() -> None:
    def ids(count: int, seed: int) -> list[int]:
        return [int(sample.image_id) for sample in made(20).drawn(count, seed).samples]

    assert ids(10, 3) == ids(10, 3) == sorted(ids(10, 3)) and len(set(ids(10, 3))) == 10
    assert ids(10, 3) != ids(10, 4) and set(ids(5, 3)) < set(ids(10, 3))
    assert ids(20, 3) == list(range(20))


@pytest.mark.parametrize("count", [0, 21])
def test_drawn__of_too_few_images(count: int) -> None:
    with pytest.raises(InputError, match=f"d has 20 images; {count} cannot be drawn"):
        made(20).drawn(count, 0)
