"""Which layers become int8: errors by a slow reference, and what is chosen from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper

from ptedge.export.onnx_run import run_as_written
from ptedge.export.precision import int8_choice
from ptedge.export.precision.int8_choice import Choice, ErrorMeter, choose_layers
from ptedge.export.precision.layers import Layers, find_layers
from ptedge.export.precision.quantize import only_these, to_int8

FRAMES = np.random.default_rng(0).integers(0, 256, (8, 3, 16, 16), dtype=np.uint8)
NAMES = ["/a/Conv", "/b/Conv", "/c/Conv"]


def slow_error(proto: Any, changed: Any, frames: NDArray[np.uint8]) -> float:
    """The error of the one predictor of these graphs, image by image."""
    wanted = [run_as_written(proto.SerializeToString(), {"images": frame[None]})["boxes"] for frame in frames]
    found = [run_as_written(changed.SerializeToString(), {"images": frame[None]})["boxes"] for frame in frames]
    squares = sum(((a - b) ** 2).mean() for a, b in zip(found, wanted, strict=True))
    return float(np.sqrt(squares / sum(value.var() for value in wanted)))


@pytest.mark.parametrize("names", [["/a/Conv"], ["/b/Conv", "/c/Conv"], NAMES])
def test_error_meter__equals_the_slow_one(graphs: tuple[Any, Any], names: list[str]) -> None:
    proto, quantised = graphs
    meter = ErrorMeter(proto, find_layers(proto), FRAMES[: int8_choice.FRAMES], 1)
    assert meter.error(quantised, []) == 0
    error = meter.error(quantised, names)
    assert 0.001 < error < 0.1
    changed = only_these(proto, quantised, names)
    assert error == pytest.approx(slow_error(proto, changed, FRAMES[: int8_choice.FRAMES]), rel=1e-3)


def test_error_meter__a_predictor_that_always_says_the_same(graphs: tuple[Any, Any]) -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(graphs[0])
    weight = next(t for t in proto.graph.initializer if t.name == "boxes_weight")
    weight.CopyFrom(numpy_helper.from_array(np.zeros((3, 3, 1, 1), np.float32), weight.name))
    assert ErrorMeter(proto, find_layers(proto), FRAMES, 1).error(to_int8(proto, FRAMES), NAMES) == 0


def test_choose_layers__within_the_limit_by_measurement(graphs: tuple[Any, Any]) -> None:
    proto, quantised = graphs
    layers = find_layers(proto)

    def choose_within(limit: float) -> Choice:
        return choose_layers(proto, {"as told": quantised}, layers, FRAMES, 1, limit)

    everything = choose_within(1)
    assert (everything.ranges, everything.layers) == ("as told", tuple(NAMES))
    assert everything.share == pytest.approx(3 / 4)  # the predictor multiplies as often as each of them
    meter = ErrorMeter(proto, layers, FRAMES, 1)
    errors = {name: meter.error(quantised, [name]) for name in NAMES}
    least, second = sorted(errors.values())[:2]
    one = choose_within((least + second) / 2)
    assert one.layers == tuple(name for name in NAMES if errors[name] == least)
    assert one.error == pytest.approx(least)
    assert one.share == pytest.approx(1 / 4)
    none = choose_within(least / 2)  # above the limit, the one that is least so
    assert (none.layers, none.error) == (one.layers, one.error)


class FixedMeter:
    """Errors as told, times the number in place of the graph; together, ``excess`` times those of independent ones."""

    errors: dict[str, float]
    excess: float

    def __init__(self, *_: object) -> None:
        pass

    def error(self, quantised: float, names: Collection[str]) -> float:
        together = math.sqrt(math.fsum(self.errors[name] ** 2 for name in names))  # in any order the same
        return quantised * together * (self.excess if len(names) > 1 else 1)


def choose(
    patch: pytest.MonkeyPatch,
    errors: dict[str, float],
    work: dict[str, int],
    limit: float,
    excess: float = 1,
    graphs: Mapping[str, float] = MappingProxyType({"a": 1.0}),
) -> Choice:
    patch.setattr(FixedMeter, "errors", errors, raising=False)
    patch.setattr(FixedMeter, "excess", excess, raising=False)
    patch.setattr(int8_choice, "ErrorMeter", FixedMeter)
    patch.setattr(int8_choice, "multiplications", lambda proto: work)
    layers = Layers(tuple(errors), (), tuple(errors), ())
    return choose_layers(None, graphs, layers, FRAMES, 1, limit)


def test_choose_layers__cheapest_error_for_the_work_first(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {"a": 10, "b": 80, "c": 5, "d": 5}
    errors = {"a": 3.0, "b": 4.0, "c": 4.0, "d": 1.0}  # squares over work: 0.9, 0.2, 3.2, 0.2
    assert choose(monkeypatch, errors, work, 5.0).layers == ("b", "d")  # and a would make 26, above 25
    assert choose(monkeypatch, errors, work, 5.1).layers == ("a", "b", "d")
    assert choose(monkeypatch, errors, work, 4.05).layers == ("b",)  # d fits no more
    assert choose(monkeypatch, errors, work, 3.5).layers == ("a", "d")  # b does not fit, so the next are asked


def test_choose_layers__errors_that_add_up_cost_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {"a": 10, "b": 80, "c": 5}
    errors = {"a": 3.0, "b": 3.0, "c": 3.0}
    assert choose(monkeypatch, errors, work, 5.2).layers == ("a", "b", "c")  # 5.196 together
    assert choose(monkeypatch, errors, work, 5.2, excess=1.1).layers == ("a", "b")  # 5.7, then 4.7
    assert choose(monkeypatch, errors, work, 5.2, excess=1.5).layers == ("b",)


@given(
    table=st.lists(st.tuples(st.floats(0.001, 1), st.integers(1, 10**9)), min_size=1, max_size=8),
    limit=st.floats(0.001, 2),
    excess=st.floats(0.9, 2),
)
def test_choose_layers__is_never_above_the_limit(table: list[tuple[float, int]], limit: float, excess: float) -> None:
    errors = {str(i): error for i, (error, _) in enumerate(table)}
    with pytest.MonkeyPatch.context() as patch:
        choice = choose(patch, errors, {str(i): work for i, (_, work) in enumerate(table)}, limit, excess)
        assert choice.error == FixedMeter().error(1, choice.layers)
    if min(errors.values()) <= limit:
        assert choice.error <= limit
    else:
        assert [errors[name] for name in choice.layers] == [min(errors.values())]


def test_choose_layers__the_ranges_that_let_more_be_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    work, errors = {"a": 10, "b": 80}, {"a": 3.0, "b": 4.0}
    graphs = {"wide": 1.0, "narrow": 0.5, "clipped": 2.0}  # what they make of each error
    assert choose(monkeypatch, errors, work, 2.5, graphs=graphs).ranges == "narrow"
    both = choose(monkeypatch, errors, work, 5, graphs=graphs)  # 5 and 2.5 together: the first of equals
    assert (both.ranges, both.layers, both.error, both.share) == ("wide", ("a", "b"), 5, 1)
    one = choose(monkeypatch, errors, work, 4, graphs={"clipped": 1.0, "wide": 1.1})
    assert (one.ranges, one.layers) == ("clipped", ("b",))
    none = choose(monkeypatch, errors, work, 1, graphs=graphs)
    assert (none.ranges, none.layers, none.error) == ("narrow", ("a",), 1.5)
