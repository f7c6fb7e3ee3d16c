from __future__ import annotations

import numpy as np

from ptedge.runtime.collection.small import dhash, small_grey


def test_dhash__by_hand() -> None:
    row = np.arange(9, dtype=np.uint8) * 20  # brighter to the right: all bits set
    image = np.broadcast_to(row[None, :, None], (8, 9, 3)).copy()
    assert dhash(image) == 2**64 - 1
    assert dhash(image[:, ::-1].copy()) == 0
    image[0] = 0
    assert dhash(image) == 2**56 - 1  # first row flat


def test_small_grey__means_of_its_parts() -> None:
    image = np.zeros((16, 18, 3), np.uint8)
    image[:2, :2] = [[[100], [0]], [[0], [100]]]
    assert small_grey(image)[0, 0] == 50 and small_grey(image).sum() == 50
