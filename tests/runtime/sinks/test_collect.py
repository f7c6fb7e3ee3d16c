from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from made_field import ALL, collect, found, names, scene

from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError, OutputError
from ptedge.frames.source import Frame, open_frames
from ptedge.runtime.field import open_field
from ptedge.runtime.options import Policy
from ptedge.runtime.sinks.collect import FieldSink, _Chooser, dhash, entropy_of, looseness_of
from ptedge.runtime.sinks.files import Result


def test_collect__writes_what_the_contract_says(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    folder = open_field(tmp_path / "f")
    record = next(iter(folder.records()))
    assert record["time"] == 0.0 and record["camera"] == "rtsp://***@cam/1" and record["model"] == "hash"
    assert record["why"] == ["random"] and record["detections"] == found().to_json(("car",))
    assert record["preprocessing"] == {"input_size": [64, 96]}
    assert folder.images == 3 and folder.last_id == 3
    assert folder.about["counters"] == {"seen": 3, "kept": 3, "random": 3}
    data = (tmp_path / "f" / record["file"]).read_bytes()
    assert record["bytes"] == len(data) and b"Exif" not in data
    assert sorted(p.name for p in (tmp_path / "f").iterdir()) == ["field.json", "frames.jsonl", "images"]


def test_collect__is_a_source_of_frames(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    source = open_frames(str(tmp_path / "f"))
    assert source.kind == "field" and [frame.time for frame in source] == [0.0, 0.1, 0.2]


def test_collect__same_frames_same_choice_whatever_the_clock(tmp_path: Path) -> None:
    policy = Policy(random_share=0.3, min_frames=0, seed=4)
    for name in ("a", "b"):
        collect(tmp_path / name, policy, count=40)
    assert names(tmp_path / "a") == names(tmp_path / "b")
    assert 4 < len(names(tmp_path / "a")) < 25


def test_collect__second_run_goes_on_counting(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    sink = collect(tmp_path / "f", count=2, first=2)
    assert sink.kept == 2
    assert [Path(name).name[:8] for name in names(tmp_path / "f")] == ["00000001", "00000002", "00000003", "00000004"]
    assert open_field(tmp_path / "f").about["counters"]["seen"] == 4


def test_collect__uncertain_frames_after_a_warm_up(tmp_path: Path) -> None:
    policy = Policy(random_share=0.0, uncertain_quantile=0.9, min_frames=0, duplicate_bits=-1)
    odd = {5: found(entropy=0.6), 30: found(entropy=0.6), 33: found(sigma=9.0)}  # frame 5 lies in the warm-up
    collect(tmp_path / "f", policy, count=40, detections=lambda i: odd.get(i, found()))
    kept = {record["frame"]: record["why"] for record in open_field(tmp_path / "f").records()}
    assert kept == {30: ["uncertain class"], 33: ["uncertain box"]}


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (Policy(random_share=1, min_frames=4, duplicate_bits=-1), [0, 4, 8]),
        (Policy(random_share=1, min_frames=0, min_seconds=0.5, duplicate_bits=-1), [0, 5]),
        (Policy(random_share=1, min_frames=0, max_images=2, duplicate_bits=-1), [0, 1]),
        (Policy(random_share=1, min_frames=0, max_bytes=1, duplicate_bits=-1), [0]),
        (Policy(random_share=0, uncertain_quantile=1, min_frames=0), []),
    ],
)
def test_collect__intervals_and_quotas(tmp_path: Path, policy: Policy, kept: list[int]) -> None:
    collect(tmp_path / "f", policy)
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == kept


def test_collect__near_duplicates_are_passed_over_also_in_the_next_run(tmp_path: Path) -> None:
    policy = Policy(random_share=1, min_frames=0)
    noisy = lambda i: np.clip(scene(1).astype(int) + i % 3, 0, 255).astype(np.uint8)  # noqa: E731
    assert collect(tmp_path / "f", policy, image=noisy).kept == 1
    again = collect(tmp_path / "f", policy, image=noisy)
    assert again.kept == 0 and again.counters["duplicate"] == 19


def test_collect__nearly_full_disk_ends_collecting_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.collect.FREE_SPACE_FLOOR", 1 << 62)
    sink = collect(tmp_path / "f")
    assert sink.kept == 0 and sink.counters["disk nearly full"] == 10


def test_collect__other_classes(tmp_path: Path) -> None:
    collect(tmp_path / "f")
    with pytest.raises(ClassMismatchError, match=r"\['bus'\].*\['car'\].*new folder"):
        FieldSink(tmp_path / "f", ALL, ("bus",), "hash", {})


def test_collect__folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(OutputError, match="holds other files"):
        FieldSink(tmp_path, ALL, ("car",), "hash", {})


def test_dhash__by_hand() -> None:
    row = np.arange(9, dtype=np.uint8) * 20  # brighter to the right: all bits set
    image = np.broadcast_to(row[None, :, None], (8, 9, 3)).copy()
    assert dhash(image) == 2**64 - 1
    assert dhash(image[:, ::-1].copy()) == 0
    image[0] = 0
    assert dhash(image) == 2**56 - 1  # first row flat


def test_measures__by_hand() -> None:
    assert entropy_of(found(entropy=np.log(2)), 1) == pytest.approx(1.0)  # uniform over car and background
    assert looseness_of(found(sigma=2.0)) == pytest.approx(2.0 / 20.0)  # 10 x 40: root of the area 20
    assert entropy_of(Detections.empty(), 3) == looseness_of(Detections.empty()) == 0.0


def test_collect__unsure_means_above_the_quantile_of_those_before(tmp_path: Path) -> None:
    """Entropies 0.00 to 0.19 in the warm-up: the 0.9 quantile is 0.171, and the 0.1 quantile would be 0.019."""
    policy = Policy(random_share=0.0, uncertain_quantile=0.9, min_frames=0, duplicate_bits=-1)
    values = [0.01 * i for i in range(20)] + [0.165, 0.18, 0.1]
    collect(tmp_path / "f", policy, count=23, detections=lambda i: found(entropy=values[i] * np.log(2)))
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [21]


def test_chooser__the_reservoir_is_an_even_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.collect.RESERVOIR", 100)
    chooser = _Chooser(Policy(random_share=0.0), 1, random.Random(3))
    for i in range(2000):
        chooser.reasons(found(entropy=i / 2000 * np.log(2)))
    kept = np.array(chooser.values["entropy"]) * 2000
    assert len(kept) == 100 and len(set(kept.round())) == 100
    # of each half of the frames a half, within four standard deviations (5); the newest 100 alone would be 0 and 100
    assert 30 <= (kept < 1000).sum() <= 70
    # and after the 1,900 that came later few of the first hundred are left: 5 expected
    assert (kept < 100).sum() <= 14


def test_collect__a_second_run_draws_anew(tmp_path: Path) -> None:
    """Had it the first one's draws, it would keep the frames at the same places."""
    policy = Policy(random_share=0.5, uncertain_quantile=1, min_frames=0, duplicate_bits=-1, seed=2)
    places = []
    for first in (0, 100):
        sink = collect(tmp_path / "f", policy, count=40, first=first)
        records = list(open_field(tmp_path / "f").records())[-sink.kept :]
        places.append([record["frame"] - first for record in records])
    assert places[0] != places[1] and min(map(len, places)) > 8


def test_collect__distance_is_kept_for_each_camera(tmp_path: Path) -> None:
    policy = Policy(random_share=1, min_frames=4, min_seconds=1.0, duplicate_bits=-1)
    sink = FieldSink(tmp_path / "f", policy, ("car",), "hash", {})
    for i, (camera, index) in enumerate([("a", 0), ("b", 1), ("a", 2), ("b", 6), ("a", 20)]):
        sink.write(Result(Frame(scene(i), index, float(index), camera, None), found(), ("car",)))
    sink.close()
    kept = [(record["camera"], record["frame"]) for record in open_field(tmp_path / "f").records()]
    assert kept == [("a", 0), ("b", 1), ("b", 6), ("a", 20)]


def test_collect__a_source_that_begins_again_is_not_too_soon(tmp_path: Path) -> None:
    policy = Policy(random_share=1, min_frames=4, min_seconds=1.0, duplicate_bits=-1)
    sink = FieldSink(tmp_path / "f", policy, ("car",), "hash", {})
    for i, index in enumerate([50, 0, 1, 9]):
        sink.write(Result(Frame(scene(i), index, index / 2, "a", None), found(), ("car",)))
    sink.close()
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [50, 0, 9]


@pytest.mark.parametrize(("spare", "kept"), [(0, 2), (1, 3)])
def test_collect__a_folder_that_is_full_to_the_byte_is_full(tmp_path: Path, spare: int, kept: int) -> None:
    collect(tmp_path / "two", count=2)
    size = open_field(tmp_path / "two").size
    policy = Policy(random_share=1, min_frames=0, max_bytes=size + spare, duplicate_bits=-1)
    collect(tmp_path / "f", policy, count=3)
    assert open_field(tmp_path / "f").images == kept


def test_collect__a_frame_that_cannot_be_a_jpeg_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.files.JPEG_SIDE", 90)
    sizes = [(80, 80), (100, 80), (80, 91), (90, 90)]
    sink = collect(tmp_path / "f", count=4, image=lambda i: np.resize(scene(i), (*sizes[i], 3)))
    assert sink.counters["cannot be a JPEG"] == 2 and sink.kept == 2
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [0, 3]
