from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_field import collect, found
from tiny_model import tiny_manifest

from ptedge.artifacts.manifest import Manifest
from ptedge.detections import Detections
from ptedge.drift.measures import measure_frame
from ptedge.drift.reference import summarise
from ptedge.errors import ClassMismatchError, InputError
from ptedge.runtime.drift.collected import describe, drift_of
from ptedge.runtime.field import open_field


def picture(brightness: int, seed: int) -> np.ndarray:
    grey = np.random.default_rng(seed).integers(brightness, brightness + 60, (9, 10, 1), np.uint8)
    return grey.repeat(8, 0).repeat(8, 1).repeat(3, 2)


def manifest() -> Manifest:
    frames = [measure_frame(picture(120, i), found(0.1 + i / 1000), (64, 96), 1) for i in range(100)]
    return tiny_manifest(class_names=("car",), reference=summarise(frames, (64, 96), "target"))


def field_of_two_days(path: Path) -> Path:
    """15 frames a day: a usual one and a dark one; of the second, 5 more were not picked by chance."""
    collect(path, count=35, image=lambda i: picture(120 if i < 15 else 10, i))
    lines = [json.loads(line) for line in (path / "frames.jsonl").read_text().splitlines()]
    for i, line in enumerate(lines):
        line["collected"] = f"2026-03-0{1 + (i >= 15)}T10:00:00+00:00"
        line["why"] = ["random"] if i < 30 else ["uncertain box"]
    (path / "frames.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_drift_of__day_by_day(tmp_path: Path) -> None:
    told = drift_of(open_field(field_of_two_days(tmp_path / "f")), manifest())
    first, second = told["days"]
    assert (first["day"], first["frames"], first["found"]) == ("2026-03-01", 15, False)
    assert (second["day"], second["collected"], second["found"]) == ("2026-03-02", 15, True)
    assert told["found"] and told["enough"] and told["frames"] == 30 and told["moved"] == second["moved"]
    assert "brightness" in {entry["measure"] for entry in told["moved"]}
    lines = describe(told)
    assert lines[1] == "  2026-03-01  15 frames: as usual" and "pictures are darker" in lines[2]
    assert lines[-1] == told["advice"]


def test_drift_of__too_few_frames(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    told = drift_of(open_field(tmp_path / "f"), manifest())
    assert not told["enough"] and not told["found"] and "too few" in describe(told)[1]


def test_drift_of__no_frame_by_chance(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    path = tmp_path / "f" / "frames.jsonl"
    path.write_text(path.read_text().replace("random", "uncertain box"))
    told = drift_of(open_field(tmp_path / "f"), manifest())
    assert told["days"] == [] and told["frames"] == 0 and not told["found"]


def test_drift_of__refuses(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=1, detections=lambda i: Detections.empty())
    folder = open_field(tmp_path / "f")
    with pytest.raises(InputError, match="--learn"):
        drift_of(folder, tiny_manifest(class_names=("car",)))
    with pytest.raises(ClassMismatchError):
        drift_of(folder, tiny_manifest(class_names=("bus",), reference=manifest().reference))
