from __future__ import annotations

import json

import numpy as np
import pytest
from drift_streams import frame, reference

from ptedge.config import from_dict, to_dict
from ptedge.detections import Detections
from ptedge.drift.reference import LEAST_SPREAD, MOST_CLASSES, SHARES, Reference, look_at, lower_ends, summarise
from ptedge.errors import ConfigError, InputError


def slow_ends(values: list[float], weights: list[float]) -> list[float]:
    total = sum(weights)
    ends = []
    for share in SHARES:
        fit = [
            v for v in values if sum(w for x, w in zip(values, weights, strict=True) if x < v) <= share * total + 1e-9
        ]
        ends.append(max(fit))
    return ends


@pytest.mark.parametrize("seed", range(20))
def test_lower_ends__slow_reference_with_ties_and_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.sort(rng.integers(0, 8, 40) if seed % 2 else rng.standard_normal(40)).astype(float)
    weights = rng.choice([1.0, 0.5, 0.25], 40)
    assert lower_ends(values, weights) == slow_ends(values.tolist(), weights.tolist())


def test_summarise__by_hand() -> None:
    rng = np.random.default_rng(0)
    frames = [{**frame(rng), "brightness": np.array([float(i)])} for i in rng.permutation(101)]
    made = summarise(frames, (64, 96), "val")
    assert made.frames == 101 and made.origin == "val"
    assert made.low["brightness"] == (0, 1, 2, 5, 10, 20, 40, 70)
    assert made.high["brightness"] == (100, 99, 98, 95, 90, 80, 60, 30)
    assert made.usual("brightness") == (10, 90) and made.spread["brightness"] == 80
    assert made.counts["brightness"] > 50  # in no order: nearly every frame counts


def test_summarise__neighbours_that_are_alike_count_less() -> None:
    rng = np.random.default_rng(0)
    frames = [frame(rng) for _ in range(200)]
    for i, one in enumerate(frames):
        one["brightness"] = np.array([float(i // 20 % 7)])
    made = summarise(frames, (64, 96), "target")
    assert made.counts["brightness"] < 30 < made.counts["contrast"]


def test_summarise__a_steady_measure_has_the_least_spread() -> None:
    rng = np.random.default_rng(0)
    frames = [{**frame(rng), "brightness": np.array([80.0])} for _ in range(30)]
    made = summarise(frames, (64, 96), "given")
    assert made.spread["brightness"] == LEAST_SPREAD["brightness"]


def test_summarise__too_few() -> None:
    with pytest.raises(InputError, match="19 frames are too few"):
        summarise([frame(np.random.default_rng(0))] * 19, (64, 96), "given")


def test_summarise__most_frequent_classes_only() -> None:
    rng = np.random.default_rng(0)
    frames = [frame(rng, classes=30) for _ in range(40)]
    for label in range(30):
        for one in frames:
            one[f"boxes:{label}"] = np.array([1.0 if label % 2 else 0.0])
    names = summarise(frames, (64, 96), "given").names
    assert {name for name in names if name.startswith("boxes")} == {f"boxes:{label}" for label in range(1, 30, 2)}
    assert MOST_CLASSES >= 15


def test_reference__survives_json_in_a_few_kilobytes() -> None:
    made = reference()
    text = json.dumps(to_dict(made))
    assert from_dict(Reference, json.loads(text), "test") == made
    assert len(text) < 10_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"frames": 0}, "frames"),
        ({"origin": "moon"}, "origin"),
        ({"low": {}}, "same measures"),
        ({"low": {"brightness": [0, 1]}}, "finite values"),
        ({"low": {"smell": [0] * 8}, "high": {"smell": [0] * 8}}, "no measure"),
        ({"spread": {"brightness": 0}}, "spread"),
        ({"high": {"brightness": [float("nan")] * 8}}, "finite values"),
    ],
)
def test_reference__refuses(change: dict[str, object], words: str) -> None:
    name = next(iter(change.get("low", {"brightness": 0})), "brightness")  # type: ignore[call-overload]
    good = {
        "frames": 30,
        "input_size": [64, 96],
        "low": {name: [0] * 8},
        "high": {name: [1] * 8},
        "spread": {name: 1},
        "counts": {name: 30},
    }
    with pytest.raises(ConfigError, match=words):
        from_dict(Reference, {**good, **change}, "test")


def test_without__a_kind() -> None:
    left = reference(classes=2).without("sigma")
    assert left is not None and not any(name.startswith("sigma") for name in left.names)
    assert "score:1" in left.names and left.without(*(name.partition(":")[0] for name in left.names)) is None


def test_look_at__pictures_and_what_is_found() -> None:
    images = (np.full((20, 30, 3), i, np.uint8) for i in range(25))
    made = look_at(images, lambda image: Detections.empty(), (32, 48), 1, "given")
    assert made.frames == 25 and made.input_size == (32, 48)
    assert made.low["brightness"][0] == 0 and made.high["brightness"][0] == 24
    assert "boxes:0" in made.names and "score:0" not in made.names
