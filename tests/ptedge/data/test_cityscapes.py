"""Cityscapes by hand-written examples: boxes, labels, ignore regions, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_files import image, rows, text

from ptedge.data import open_dataset
from ptedge.errors import ConfigError, InputError


def cityscapes(root: Path) -> None:
    objects = [
        {"label": "road", "polygon": [[0, 0], [99, 0], [99, 79]]},
        {"label": "car", "polygon": [[10, 20], [30, 15], [25, 50], [-3, 40]]},
        {"label": "cargroup", "polygon": [[50, 50], [60, 50], [60, 70]]},
        {"label": "bicycle", "polygon": [[1, 1], [4, 1], [4, 5]], "deleted": 1},
    ]
    document = {"imgWidth": 100, "imgHeight": 80, "objects": objects}
    text(root / "gtFine" / "val" / "ulm" / "ulm_01_gtFine_polygons.json", json.dumps(document))


def test_cityscapes__polygons_and_groups(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    file = image(tmp_path / "leftImg8bit" / "val" / "ulm" / "ulm_01_leftImg8bit.png")
    toml = text(tmp_path / "d.toml", 'format = "cityscapes"\nsplit = "val"')
    data = open_dataset(toml)
    assert data.class_names == ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")
    assert rows(data) == [([0, 15, 30, 50], 2, False), ([50, 50, 60, 70], 2, True)]
    assert data.samples[0].path == file and data.dropped == {}
    with pytest.raises(InputError, match=r"gtFine has no split to train on .*it names \['val'\]"):
        open_dataset(text(tmp_path / "t.toml", 'format = "cityscapes"'), use="train")
    with pytest.raises(InputError, match="looks like Cityscapes"):
        open_dataset(tmp_path)


def test_cityscapes__foggy(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    folder = tmp_path / "leftImg8bit_foggy" / "val" / "ulm"
    file = image(folder / "ulm_01_leftImg8bit_foggy_beta_0.02.png")
    head = 'format = "foggy_cityscapes"\nsplit = "val"\nclasses = ["car"]\n'
    data = open_dataset(text(tmp_path / "d.toml", head + "beta = 0.02"))
    assert (data.format, data.class_names) == ("foggy_cityscapes", ("car",)) and data.samples[0].path == file
    with pytest.raises(ConfigError, match=r"beta is 0\.03"):
        open_dataset(text(tmp_path / "d.toml", head + "beta = 0.03"))


def test_cityscapes__foggy_in_several_densities_is_every_scene_in_each(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    folder = tmp_path / "leftImg8bit_foggy" / "val" / "ulm"
    files = [image(folder / f"ulm_01_leftImg8bit_foggy_beta_{beta}.png") for beta in ("0.005", "0.01", "0.02")]
    head = 'format = "foggy_cityscapes"\nclasses = ["car"]\n'
    data = open_dataset(text(tmp_path / "d.toml", head + "beta = [0.005, 0.01, 0.02]"), use="score")
    assert [sample.path for sample in data.samples] == files and data.num_boxes == 3
    assert data.samples[0].image_id == "ulm_01_foggy_beta_0.005"
    assert rows(data, 0) == rows(data, 1) == rows(data, 2)
    for wrong, message in (("[0.02, 0.03]", r"beta is 0\.02, 0\.03"), ("[0.02, 0.02]", "twice"), ("[]", "missing")):
        with pytest.raises(ConfigError, match=message):
            open_dataset(text(tmp_path / "d.toml", f"{head}beta = {wrong}"))


def test_cityscapes__images_that_became_jpg(tmp_path: Path) -> None:
    cityscapes(tmp_path)
    file = image(tmp_path / "leftImg8bit" / "val" / "ulm" / "ulm_01_leftImg8bit.jpg")
    data = open_dataset(text(tmp_path / "d.toml", 'format = "cityscapes"'), use="score")
    assert data.samples[0].path == file and data.split == "val"


@pytest.mark.parametrize(
    ("item", "dropped"),
    [
        ({"label": "car", "polygon": [[1, 1], [4, "x"]]}, {"malformed box": 1}),
        ({"label": "car", "bbox": [1, 1, 4, 5]}, {"malformed box": 1}),
        ({"label": "Car", "polygon": [[1, 1], [4, 5]]}, {"class not listed: Car": 1}),
        ({"label": "sky", "polygon": []}, {}),
        ({"polygon": [[1, 1], [4, 5]]}, {"object without a label": 1}),
        ("car", {"object without a label": 1}),
        ({"label": "car", "polygon": [[1, 1], [4, 5]], "deleted": 2}, {"deleted is neither 0 nor 1": 1}),
    ],
)
def test_cityscapes__objects_that_do_not_fit(tmp_path: Path, item: object, dropped: dict[str, int]) -> None:
    document = {"imgWidth": 100, "imgHeight": 80, "objects": [item]}
    text(tmp_path / "gtFine" / "val" / "ulm" / "ulm_01_gtFine_polygons.json", json.dumps(document))
    data = open_dataset(text(tmp_path / "d.toml", 'format = "cityscapes"'))
    assert data.num_boxes == 0 and data.dropped == dropped
