from __future__ import annotations

import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from made_field import ALL, collect, found, names, policy, scene

from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError, OutputError
from ptedge.frames.source import Frame, open_frames
from ptedge.runtime.collection.reading import reading
from ptedge.runtime.collection.small import dhash
from ptedge.runtime.field import open_field
from ptedge.runtime.masks import Mask, Masks
from ptedge.runtime.sinks.collect import FieldSink
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
    for name in ("a", "b"):
        collect(tmp_path / name, policy({"random": 0.3}, {"duplicate_bits": 4}, seed=4), count=40)
    assert names(tmp_path / "a") == names(tmp_path / "b")
    assert 4 < len(names(tmp_path / "a")) < 25


def test_collect__second_run_goes_on_counting(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    sink = collect(tmp_path / "f", count=2, first=2)
    assert sink.kept == 2
    assert [Path(name).name[:8] for name in names(tmp_path / "f")] == ["00000001", "00000002", "00000003", "00000004"]
    assert open_field(tmp_path / "f").about["counters"]["seen"] == 4


def test_collect__uncertain_frames_after_a_warm_up(tmp_path: Path) -> None:
    unsure = policy({"entropy": 0.1, "sigma": 0.1})
    odd = {5: found(entropy=0.6), 30: found(entropy=0.6), 33: found(sigma=9.0)}  # frame 5 lies in the warm-up
    collect(tmp_path / "f", unsure, count=40, detections=lambda i: odd.get(i, found()))
    kept = {record["frame"]: record["why"] for record in open_field(tmp_path / "f").records()}
    assert kept == {30: ["entropy"], 33: ["sigma"]}


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ({"shares": {"random": 1}, "spacing": {"frames": 4}}, [0, 4, 8]),
        ({"shares": {"random": 1}, "spacing": {"seconds": 0.5}}, [0, 5]),
        ({"shares": {"random": 1}, "quota": {"bytes": 1}}, []),
        ({"shares": {}}, []),
    ],
)
def test_collect__intervals_and_what_never_fits(tmp_path: Path, words: dict[str, Any], kept: list[int]) -> None:
    collect(tmp_path / "f", policy(**words))
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == kept


def test_collect__near_duplicates_are_passed_over_also_in_the_next_run(tmp_path: Path) -> None:
    every = policy({"random": 1}, {"duplicate_bits": 4})
    noisy = lambda i: np.clip(scene(1).astype(int) + i % 3, 0, 255).astype(np.uint8)  # noqa: E731
    assert collect(tmp_path / "f", every, image=noisy).kept == 1
    again = collect(tmp_path / "f", every, image=noisy)
    assert again.kept == 0 and again.counters["duplicate"] == 19


def test_collect__other_classes(tmp_path: Path) -> None:
    collect(tmp_path / "f")
    with pytest.raises(ClassMismatchError, match=r"\['bus'\].*\['car'\].*new folder"):
        FieldSink(tmp_path / "f", ALL, ("bus",), "hash", {})


def test_collect__folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(OutputError, match="holds other files"):
        FieldSink(tmp_path, ALL, ("car",), "hash", {})


def test_collect__unsure_means_above_the_quantile_of_those_before(tmp_path: Path) -> None:
    """Entropies 0.00 to 0.19 in the warm-up: the 0.9 quantile is 0.171, and the 0.1 quantile would be 0.019."""
    values = [0.01 * i for i in range(20)] + [0.165, 0.18, 0.1]
    collect(
        tmp_path / "f", policy({"entropy": 0.1}), count=23, detections=lambda i: found(entropy=values[i] * np.log(2))
    )
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [21]


def test_collect__a_second_run_draws_anew(tmp_path: Path) -> None:
    """Had it the first one's draws, it would keep the frames at the same places."""
    places = []
    for first in (0, 100):
        sink = collect(tmp_path / "f", policy({"random": 0.5}, seed=2), count=40, first=first)
        records = list(open_field(tmp_path / "f").records())[-sink.kept :]
        places.append([record["frame"] - first for record in records])
    assert places[0] != places[1] and min(map(len, places)) > 8


def test_collect__distance_is_kept_for_each_camera(tmp_path: Path) -> None:
    apart = policy({"random": 1}, {"frames": 4, "seconds": 1.0})
    sink = FieldSink(tmp_path / "f", apart, ("car",), "hash", {})
    for i, (camera, index) in enumerate([("a", 0), ("b", 1), ("a", 2), ("b", 6), ("a", 20)]):
        sink.write(Result(Frame(scene(i), index, float(index), camera, None), found(), ("car",)))
    sink.close()
    kept = [(record["camera"], record["frame"]) for record in open_field(tmp_path / "f").records()]
    assert kept == [("a", 0), ("b", 1), ("b", 6), ("a", 20)]


def test_collect__a_source_that_begins_again_is_not_too_soon(tmp_path: Path) -> None:
    apart = policy({"random": 1}, {"frames": 4, "seconds": 1.0})
    sink = FieldSink(tmp_path / "f", apart, ("car",), "hash", {})
    for i, index in enumerate([50, 0, 1, 9]):
        sink.write(Result(Frame(scene(i), index, index / 2, "a", None), found(), ("car",)))
    sink.close()
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [50, 0, 9]


def test_collect__a_frame_that_cannot_be_a_jpeg_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.runtime.sinks.files.JPEG_SIDE", 90)
    sizes = [(80, 80), (100, 80), (80, 91), (90, 90)]
    sink = collect(tmp_path / "f", count=4, image=lambda i: np.resize(scene(i), (*sizes[i], 3)))
    assert sink.counters["cannot be a JPEG"] == 2 and sink.kept == 2
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [0, 3]


def test_collect__a_full_folder_gives_up_the_least_informative(tmp_path: Path) -> None:
    """Doubt of frames 20 to 25 against the ramp of the first 20 and each other; two may stay."""
    values = [0.01 * i for i in range(20)] + [0.5, 0.3, 0.6, 0.2, 0.4, 0.7]
    full = policy({"entropy": 0.5}, quota={"images": 2})
    sink = collect(tmp_path / "f", full, count=26, detections=lambda i: found(entropy=values[i] * np.log(2)))
    kept = [record["frame"] for record in open_field(tmp_path / "f").records()]
    assert kept == [22, 25] and len(list((tmp_path / "f" / "images").iterdir())) == 2
    # 21 came beside 20; 22 in place of 21; 23 and 24 said less than all that was there; 25 in place of 20
    assert (sink.kept, sink.counters["evicted"], sink.counters["quota reached"]) == (4, 2, 2)
    about = open_field(tmp_path / "f").about
    assert about["strategies"] == {"entropy": {"picked": 6, "kept": 4, "evicted": 2}}


def test_collect__eviction_passes_over_what_is_named_in_keep_txt(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    (tmp_path / "f" / "keep.txt").write_text("\n".join(Path(name).name for name in names(tmp_path / "f")))
    sink = collect(tmp_path / "f", policy({"random": 1}, quota={"images": 2}), count=4, first=2)
    assert sink.counters["quota reached"] == 4 and sink.counters["evicted"] == 0
    assert [record["frame"] for record in open_field(tmp_path / "f").records()] == [0, 1]


def test_collect__nothing_is_removed_while_images_are_exported(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    before = names(tmp_path / "f")
    full = policy({"random": 1}, quota={"images": 2})
    with reading(tmp_path / "f"):
        assert collect(tmp_path / "f", full, count=9, first=2).counters["folder being read"] > 0
        assert names(tmp_path / "f") == before
    assert collect(tmp_path / "f", full, count=9, first=2).counters["evicted"] > 0
    assert len(names(tmp_path / "f")) == 2


def test_collect__triples_bring_both_neighbours(tmp_path: Path) -> None:
    triples = policy({"random": 1}, {"frames": 0}, triples=True)
    sink = collect(tmp_path / "f", triples, count=8)
    records = list(open_field(tmp_path / "f").records())
    # the first frame has none before it; frame 1 is there for its sake, and 2 would need it again
    told = [(record["frame"], record["place"], record["why"]) for record in records]
    chance, other = ["random"], ["neighbour"]
    assert told == [(0, 0, chance), (1, 1, other), *[(f, f - 3, (other, chance, other)[f - 2]) for f in (2, 3, 4)]] + [
        (f, f - 6, (other, chance, other)[f - 5]) for f in (5, 6, 7)
    ]
    for record in records:
        heads = {Path(r["file"]).stem[9:] for r in records if r["triple"] == record["triple"] and r["place"] == 0}
        assert heads == {record["triple"]} and record["dhash"] and record["detections"]
    assert sink.kept == 3 and sink.counters["neighbours"] == 5 and sink.counters["too soon"] == 5
    assert names(tmp_path / "f") == sorted(names(tmp_path / "f"))


def test_collect__a_triple_is_evicted_as_a_whole(tmp_path: Path) -> None:
    sink = collect(tmp_path / "f", policy({"random": 1}, quota={"images": 3}, triples=True), count=30)
    records = list(open_field(tmp_path / "f").records())
    assert [record["place"] for record in records] in ([-1, 0, 1], [0, 1], [-1, 0])
    assert sink.counters["evicted"] > 0
    assert sink.counters["evicted"] + len(records) == sink.kept + sink.counters["neighbours"]


def test_collect__strategies_see_what_min_score_leaves_out(tmp_path: Path) -> None:
    """A candidate of 0.29 decides, and is not among the detections that are stored."""
    near = policy({"near_threshold": 0.1})
    sink = FieldSink(tmp_path / "f", near, ("car",), "hash", {})
    for i in range(23):
        low = found()
        if i == 21:
            low = Detections(low.boxes, np.array([0.29], np.float32), low.labels, low.sigma, low.entropy)
        result = Result(Frame(scene(i), i, i / 10, "a", None), Detections.empty(), ("car",), candidates=low)
        sink.write(result)
    sink.close()
    records = list(open_field(tmp_path / "f").records())
    assert [(r["frame"], r["why"], r["detections"]) for r in records] == [(21, ["near_threshold"], [])]
    assert records[0]["measures"] == {"near_threshold": pytest.approx(1 - 0.01 / 0.15, abs=1e-4)}


def test_collect__a_line_says_when_it_was_collected(tmp_path: Path) -> None:
    before = time.time()
    collect(tmp_path / "f", count=1)
    record = next(iter(open_field(tmp_path / "f").records()))
    assert before - 1 <= datetime.fromisoformat(record["collected"]).timestamp() <= time.time()


def test_collect__goes_on_in_a_folder_of_an_earlier_version(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "made_before" / "field", tmp_path / "f")
    folder = open_field(tmp_path / "f")
    sink = FieldSink(tmp_path / "f", policy({"random": 1}, quota={"images": 6}), folder.class_names, "hash", {})
    for i in range(40):
        sink.write(Result(Frame(scene(i), i, i / 10, "a", None), found(), folder.class_names))
    sink.close()
    assert len(names(tmp_path / "f")) == 6 and sink.counters["evicted"] > 0
    assert sink.counters["seen"] == folder.about["counters"]["seen"] + 40


def test_collect__what_lies_under_a_mask_is_neither_judged_nor_stored(tmp_path: Path) -> None:
    """Of 9 x 10 blocks of 8 pixels the left half is hidden, where the only box is: its doubt picks no frame."""
    masks = Masks([Mask(((0, 0), (0.5, 0), (0.5, 1), (0, 1)))])
    unsure = policy({"random": 1.0, "entropy": 0.5}, {"frames": 20})
    sink = FieldSink(tmp_path / "f", unsure, ("car",), "hash", {})
    for i in range(25):
        image = scene(i)
        hidden = masks.of("a", image)
        assert hidden is not None
        frame = Frame(hidden.hide(image), i, i / 10, "a", None)
        sink.write(Result(frame, found(entropy=0.01 * i), ("car",), hidden=hidden))
    sink.close()
    records = list(open_field(tmp_path / "f").records())
    assert [(r["frame"], r["why"], r["under_masks"], r["detections"]) for r in records] == [
        (0, ["random"], 1, []),
        (20, ["random"], 1, []),
    ]
    assert records[0]["measures"] == {"entropy": 0.0} and sink.counters["masked"] == 2
    picture = cv2.imread(str(tmp_path / "f" / records[0]["file"]))
    assert picture is not None and picture[:, :32].max() < 12 and picture[:, 48:].std() > 40
    assert int(records[0]["dhash"], 16) == dhash(masks.of("a", scene(0)).hide(scene(0)))  # type: ignore[union-attr]


def test_collect__stored_pictures_have_no_metadata(tmp_path: Path) -> None:
    """EXIF with a position, XMP and a comment go in; out comes a JPEG with pixels and tables alone."""
    picture = tmp_path / "in" / "a.jpg"
    picture.parent.mkdir()
    _, plain = cv2.imencode(".jpg", scene(0))
    gps = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x88\x25\0\x04\0\0\0\x01\0\0\0\x1a\0\0\0\0GPS-52.5200N-13.4050E"
    blocks = [(b"\xe1", gps), (b"\xe1", b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"), (b"\xfe", b"taken by me")]
    extra = b"".join(b"\xff" + kind + (len(data) + 2).to_bytes(2, "big") + data for kind, data in blocks)
    picture.write_bytes(plain.tobytes()[:2] + extra + plain.tobytes()[2:])
    sink = FieldSink(tmp_path / "f", ALL, ("car",), "hash", {})
    for frame in open_frames(str(picture)):
        sink.write(Result(frame, found(), ("car",)))
    sink.close()
    data = (tmp_path / "f" / names(tmp_path / "f")[0]).read_bytes()
    assert b"GPS" in picture.read_bytes() and markers(picture.read_bytes()) >= {0xE1, 0xFE}
    assert markers(data) <= {0xE0, 0xDB, 0xC0, 0xC4, 0xDA}  # JFIF, tables, frame, tables, scan
    assert not any(word in data for word in (b"Exif", b"GPS", b"xmp", b"taken"))


def markers(jpeg: bytes) -> set[int]:
    """Kinds of the segments of a JPEG, up to its pixels."""
    kinds, place = set[int](), 2
    while jpeg[place] == 0xFF and 0xDA not in kinds:
        kinds.add(jpeg[place + 1])
        place += 2 + int.from_bytes(jpeg[place + 2 : place + 4], "big")
    return kinds
