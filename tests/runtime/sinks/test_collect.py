from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.errors import ArtifactError, ClassMismatchError, OutputError
from ptedge.frames.source import Frame, open_frames
from ptedge.runtime.field import create_field, export_coco, open_field, prune, summarize
from ptedge.runtime.sinks.collect import FieldSink, Policy, dhash, entropy_of, looseness_of
from ptedge.runtime.sinks.files import Result

ALL = Policy(random_share=1.0, uncertain_quantile=1.0, min_frames=0, duplicate_bits=-1)


def found(entropy: float = 0.1, sigma: float = 1.0) -> Detections:
    return Detections(
        np.array([[0, 0, 10, 40]], np.float32),
        np.array([0.8], np.float32),
        np.array([0]),
        np.full((1, 4), sigma, np.float32),
        np.array([entropy], np.float32),
    )


def scene(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (9, 10, 3), np.uint8).repeat(8, 0).repeat(8, 1)


def collect(folder: Path, policy: Policy = ALL, count: int = 10, first: int = 0, **changes: Any) -> FieldSink:
    sink = FieldSink(folder, policy, ("car",), "hash", {"input_size": [64, 96]})
    for i in range(first, first + count):
        detections = changes.get("detections", lambda i: found())(i)
        image = changes.get("image", scene)(i)
        sink.write(Result(Frame(image, i, i / 10, "rtsp://u:p@cam/1", None), detections, ("car",)))
    sink.close()
    return sink


def names(folder: Path) -> list[str]:
    return [record["file"] for record in open_field(folder).records()]


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


def test_open_field__power_loss_at_any_byte_of_the_last_line(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    path = tmp_path / "f" / "frames.jsonl"
    whole = path.read_bytes()
    two_lines = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for end in range(two_lines, len(whole), 37):
        path.write_bytes(whole[:end])
        assert open_field(tmp_path / "f").images == 2
    (tmp_path / "f" / "images" / ".00000004_x.jpg.1.tmp").write_bytes(b"half")
    sink = collect(tmp_path / "f", count=1, first=9)
    assert sink.kept == 1
    assert sorted(p.name for p in (tmp_path / "f" / "images").iterdir()) == [
        Path(name).name for name in names(tmp_path / "f")
    ]
    assert len(names(tmp_path / "f")) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "broken"), ("[]", "broken"), ('{"class_names": [], "schema": 99}', "schema 99"), (None, "no field folder")],
)
def test_open_field__refuses(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "field.json").write_text(text)
    with pytest.raises(ArtifactError, match=words):
        open_field(tmp_path)


def test_records__broken_line_in_the_middle(tmp_path: Path) -> None:
    create_field(tmp_path / "f", {"class_names": ["car"]})
    (tmp_path / "f" / "frames.jsonl").write_text('{"file": "a"}\n{"fi\n{"file": "b"}\n')
    with pytest.raises(ArtifactError, match="line 2 is broken"):
        open_field(tmp_path / "f")


def test_summarize__counts(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3, detections=lambda i: found() if i else Detections.empty())
    counts = summarize(open_field(tmp_path / "f"))
    assert counts["images"] == 3 and counts["why"] == {"random": 3} and counts["detections"] == {"car": 2}
    assert counts["bytes"] == sum(p.stat().st_size for p in (tmp_path / "f" / "images").iterdir())


def test_export_coco__pre_labels(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    assert export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.3, "CC0") == 2
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["licenses"][0]["name"] == "CC0" and document["info"]["description"]
    assert document["annotations"][0]["bbox"] == [0, 0, 10, 40]
    assert (tmp_path / "f" / "images" / document["images"][0]["file_name"]).is_file()
    export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.9, "CC0")
    assert json.loads((tmp_path / "c.json").read_text())["annotations"] == []


def test_prune__least_informative_first(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=5, detections=lambda i: found(entropy=(0.3, 0.1, 0.5, 0.2, 0.4)[i]))
    assert prune(open_field(tmp_path / "f"), None, 2) == 3
    after = open_field(tmp_path / "f")
    assert [record["frame"] for record in after.records()] == [2, 4]
    assert len(list((tmp_path / "f" / "images").iterdir())) == 2 == after.about["images"]
    biggest = max(record["bytes"] for record in after.records())
    assert prune(after, biggest, None) == 1
    assert prune(open_field(tmp_path / "f"), 10**9, 100) == 0


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


@pytest.mark.parametrize("wrong", [{"random_share": 1.1}, {"max_images": 0}, {"duplicate_bits": 65}])
def test_policy__refuses(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Policy(**wrong)  # type: ignore[arg-type]
