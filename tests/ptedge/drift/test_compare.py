from __future__ import annotations

import pytest
from drift_streams import reference, stream

from ptedge.drift.compare import FEWEST, compare_frames


def test_compare_frames__nothing_moved() -> None:
    known = reference()
    assert sum(bool(compare_frames(stream(60, seed), known).moved) for seed in range(40)) == 0


@pytest.mark.parametrize(("kind", "by", "side"), [("brightness", -4.0, "low"), ("sigma", 4.0, "high")])
def test_compare_frames__tells_what_moved(kind: str, by: float, side: str) -> None:
    known = reference()
    compared = compare_frames(stream(60, 0, lambda i: {kind: by}), known)
    assert compared.enough and {(moved.name.partition(":")[0], moved.side) for moved in compared.moved} == {
        (kind, side)
    }
    moved = compared.moved[0]
    assert moved.usual == known.usual(moved.name) and moved.share > 0.9
    assert moved.now < moved.usual[0] if by < 0 else moved.now > moved.usual[1]


def test_compare_frames__too_few_frames_say_nothing() -> None:
    compared = compare_frames(stream(FEWEST - 1, 0, lambda i: {"brightness": -9.0}), reference())
    assert not compared.enough and compared.moved == () and compared.frames == FEWEST - 1
