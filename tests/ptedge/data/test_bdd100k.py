"""BDD100k by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import check_images, open_dataset, require_images
from ptedge.errors import ConfigError, InputError


def test_bdd100k__boxes_crowd_and_ignored_categories(tmp_path: Path) -> None:
    corners = {"x1": 1.5, "y1": 2, "x2": 30, "y2": 40}
    labels = [
        {"category": "car", "box2d": corners, "attributes": {"crowd": False}},
        {"category": "car", "box2d": corners, "attributes": {"crowd": True}},
        {"category": "trailer", "box2d": corners},
        {"category": "bus", "poly2d": [{"vertices": [[5, 6], [9, 3]], "closed": True}, {"vertices": [[2, 8]]}]},
        {"category": "lane/road curb", "poly2d": [{"vertices": [[5, 6], [9, 3]], "closed": False}]},
        {"category": "car"},
    ]
    frames = [{"name": "a.jpg", "videoName": "v", "labels": labels}, {"name": "b.jpg", "labels": None}]
    path = text(tmp_path / "labels.json", json.dumps(frames))
    file = image(tmp_path / "images" / "v" / "a.jpg")
    data = open_dataset(path)
    assert (data.format, data.class_names, data.dropped) == ("bdd100k", ("bus", "car"), {"malformed box": 1})
    assert rows(data) == [
        ([1.5, 2, 30, 40], 1, False),
        ([1.5, 2, 30, 40], 1, True),
        ([1.5, 2, 30, 40], -1, True),
        ([2, 3, 9, 8], 0, False),
    ]
    assert data.samples[0].path == file and rows(data, 1) == []


CAR = {"id": "0", "category": "car", "box2d": {"x1": 40, "y1": 30, "x2": 100, "y2": 90}, "attributes": {}}


@pytest.mark.parametrize(
    "document",
    [
        [{"name": "a.png", "labels": [CAR], "timestamp": 1}, {"name": "b.png", "attributes": {}, "timestamp": 1}],
        [{"name": "a.png", "labels": [CAR]}, {"name": "b.png"}],
        {
            "config": {"categories": [{"name": "car"}]},
            "frames": [{"name": "a.png", "labels": [CAR]}, {"name": "b.png"}],
        },
        [{"name": "a", "labels": [CAR]}, {"name": "b", "labels": None}],
    ],
)
def test_bdd100k__frames_without_labels(tmp_path: Path, document: object) -> None:
    for name in ("a.png", "b.png"):
        image(tmp_path / name, 200, 120)
    data = open_dataset(text(tmp_path / "a.json", json.dumps(document)))
    assert (data.format, len(data), data.class_names) == ("bdd100k", 2, ("car",))
    assert rows(data) == [([40, 30, 100, 90], 0, False)] and rows(data, 1) == []
    require_images(data)


def test_bdd100k__the_older_form_has_one_frame_a_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        document = {"name": name, "frames": [{"timestamp": 1, "objects": [CAR]}], "attributes": {}}
        text(tmp_path / f"{name}.json", json.dumps(document))
        image(tmp_path / f"{name}.jpg", 200, 120)
    assert rows(open_dataset(tmp_path / "a.json")) == [([40, 30, 100, 90], 0, False)]
    data = open_dataset(tmp_path)
    assert [sample.path.name for sample in data.samples] == ["a.jpg", "b.jpg"] and data.num_boxes == 2


@pytest.mark.parametrize("document", [[{"name": "a"}], [{"id": 1, "name": "car"}], [], {"frames": []}, [["a"]]])
def test_bdd100k__lists_of_other_named_things(tmp_path: Path, document: object) -> None:
    with pytest.raises(InputError, match=r"neither COCO .* nor BDD100k"):
        open_dataset(text(tmp_path / "a.json", json.dumps(document)))


@pytest.mark.parametrize(
    ("label", "dropped"),
    [
        ({**CAR, "attributes": {"crowd": "maybe"}}, "crowd is neither true nor false"),
        ({**CAR, "box2d": {"x1": 1, "y1": 2, "x2": float("nan"), "y2": 4}}, "malformed box"),
        ({**CAR, "box2d": [1, 2, 3, 4]}, "malformed box"),
        ({"category": "car", "poly2d": [{"vertices": 3}]}, "malformed box"),
        ({"category": "car", "poly2d": [{"vertices": [[1, 1], [9, 1], [9, 9]], "closed": False}]}, "malformed box"),
        ({"box2d": CAR["box2d"]}, "label without a category"),
        (3, "label without a category"),
    ],
)
def test_bdd100k__labels_that_do_not_fit(tmp_path: Path, label: object, dropped: str) -> None:
    document = [{"name": "a.png", "labels": [CAR, label]}]
    data = open_dataset(text(tmp_path / "a.json", json.dumps(document)))
    assert data.num_boxes == 1 and data.dropped == {dropped: 1}


def test_bdd100k__a_category_outside_the_benchmark_counts_where_it_is_a_class(tmp_path: Path) -> None:
    text(tmp_path / "a.json", json.dumps([{"name": "a.png", "labels": [{**CAR, "category": "trailer"}]}]))
    head = 'format = "bdd100k"\nannotations = "a.json"\n'
    assert open_dataset(text(tmp_path / "d.toml", f'{head}classes = ["trailer"]')).num_boxes == 1
    mapped = open_dataset(text(tmp_path / "e.toml", f'{head}classes = ["car"]\n[class_map]\ntrailer = "car"'))
    assert mapped.num_boxes == 1


def test_bdd100k__frames_of_given_attributes(tmp_path: Path) -> None:
    times = ("daytime", "night", "daytime", None, "undefined")
    frames = [
        {"name": f"{i}.jpg", "labels": None, "attributes": {"timeofday": time, "weather": "clear"} if time else None}
        for i, time in enumerate(times)
    ]
    text(tmp_path / "labels.json", json.dumps(frames))
    head = 'format = "bdd100k"\nannotations = "labels.json"\nclasses = ["car"]\n'
    day = 'attributes = { timeofday = "daytime", weather = "clear" }'
    data = open_dataset(text(tmp_path / "d.toml", head + day))
    assert [sample.path.name for sample in data.samples] == ["0.jpg", "2.jpg"]
    left_out = ("its timeofday is 'night'", "it says no timeofday", "its timeofday is 'undefined'")
    assert data.notes == {f"frame left out: {reason}": 1 for reason in left_out}
    with pytest.raises(InputError, match="no frame with timeofday = 'dawn'; there are 'daytime', 'night', 'undefined'"):
        open_dataset(text(tmp_path / "d.toml", head + 'attributes = { timeofday = "dawn" }'))
    with pytest.raises(ConfigError, match="attributes goes with the format bdd100k only"):
        open_dataset(text(tmp_path / "d.toml", 'format = "voc"\n' + day))


def test_bdd100k__videos_with_frames_of_one_name(tmp_path: Path) -> None:
    frames = [{"name": "1.jpg", "videoName": video, "labels": [CAR]} for video in ("v", "w")]
    path = text(tmp_path / "a.json", json.dumps(frames))
    image(tmp_path / "1.jpg")
    assert len(check_images(open_dataset(path))) == 2  # the one file cannot be both
    files = [image(tmp_path / "images" / video / "1.jpg", 200, 120) for video in ("v", "w")]
    assert [sample.path for sample in open_dataset(path).samples] == files
