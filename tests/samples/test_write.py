"""Files: COCO folders that the readers take, frames, and a video with its tracks."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data.classes import ClassRules
from ptedge.data.coco import read_coco
from ptedge.errors import OutputError
from ptedge.samples.scenes import CLASS_NAMES, DOMAINS, render_scene
from ptedge.samples.write import render_video, video_scenes, write_coco, write_frames


def test_write_coco__reads_back_the_same(tmp_path: Path) -> None:
    written = write_coco(tmp_path, DOMAINS["clear"], count=3, seed=4, suffix=".png")
    back = read_coco(tmp_path / "annotations.json", ClassRules())
    assert back.class_names == CLASS_NAMES
    assert len(back) == 3
    for index, (sample, expected) in enumerate(zip(back.samples, written.samples, strict=True)):
        scene = render_scene(4, index, DOMAINS["clear"])
        assert np.array_equal(cv2.imread(str(sample.path))[..., ::-1], scene.image)
        assert np.array_equal(sample.boxes, scene.boxes)
        assert np.array_equal(sample.labels, expected.labels)
        assert np.array_equal(sample.ignore, scene.ignore)
        assert (sample.width, sample.height) == (320, 192)


def test_write_coco__unlabelled_leaves_no_annotations(tmp_path: Path) -> None:
    write_coco(tmp_path, DOMAINS["fog"], count=1, seed=0, labelled=False)
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_write_coco__first_continues_a_set(tmp_path: Path) -> None:
    write_coco(tmp_path / "a", DOMAINS["clear"], count=2, seed=0)
    write_coco(tmp_path / "b", DOMAINS["clear"], count=1, seed=0, first=1)
    name = "images/000001.jpg"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_write_frames__images_only(tmp_path: Path) -> None:
    paths = write_frames(tmp_path / "frames", DOMAINS["dusk"], count=2, seed=0, width=160, height=96)
    assert sorted(path.name for path in (tmp_path / "frames").iterdir()) == ["000000.jpg", "000001.jpg"]
    assert cv2.imread(str(paths[1])).shape == (96, 160, 3)


def test_write_frames__folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        write_frames(tmp_path / "file", DOMAINS["clear"], count=1, seed=0)


def test_video_scenes__tracks_keep_their_class_and_move_smoothly() -> None:
    scenes = video_scenes(DOMAINS["clear"], frames=12, fps=10, seed=1, width=160, height=96)
    labels: dict[int, set[int]] = defaultdict(set)
    centres: dict[int, list[tuple[int, np.ndarray, float]]] = defaultdict(list)
    for frame, scene in enumerate(scenes):
        for track, label, box, share in zip(
            scene.track_ids.tolist(), scene.labels.tolist(), scene.boxes, scene.visibility, strict=True
        ):
            labels[track].add(label)
            if share > 0.95:
                centres[track].append((frame, (box[:2] + box[2:]) / 2, float(box[3] - box[1])))
    assert all(len(found) == 1 for found in labels.values())
    long = [path for path in centres.values() if len(path) >= 6]
    assert len(long) >= 2
    for path in long:
        for (frame, centre, height), (after, moved, grown) in pairwise(path):
            if after == frame + 1:
                # a car at 8 + 9.5 m/s head-on, at 6 m, comes 1.75 m nearer in a frame
                assert np.abs(moved - centre).max() < 0.5 * height + 3
                assert 0.65 < grown / height < 1.5


def test_video_scenes__frames_do_not_depend_on_the_count_of_calls() -> None:
    first, again = (video_scenes(DOMAINS["fog"], 2, 10, seed=3, width=160, height=96) for _ in range(2))
    assert [scene.image.tobytes() for scene in first] == [scene.image.tobytes() for scene in again]
    assert first[0].image.tobytes() != first[1].image.tobytes()


def test_render_video__file_and_tracks(tmp_path: Path) -> None:
    tracks = render_video(tmp_path / "drive.mp4", DOMAINS["clear"], frames=5, fps=10, seed=2)
    capture = cv2.VideoCapture(str(tmp_path / "drive.mp4"))
    frames = 0
    while capture.read()[0]:
        frames += 1
    assert frames == 5
    document = json.loads(tracks.read_text())
    assert document["classes"] == list(CLASS_NAMES)
    assert {line["frame"] for line in document["tracks"]} == set(range(5))
    scene = video_scenes(DOMAINS["clear"], 5, 10, seed=2)[4]
    last = [line["box"] for line in document["tracks"] if line["frame"] == 4]
    assert last == scene.boxes.tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive.mp4", "drive.tracks.json"]
