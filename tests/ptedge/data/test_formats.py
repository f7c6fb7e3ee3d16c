"""Every format on real files, where they are at hand."""

from __future__ import annotations

import numpy as np
import pytest
from places import SHARED

from ptedge.data import open_dataset, require_images


@pytest.mark.skipif(not (SHARED / "carla_to_road").is_dir(), reason="shared/data/carla_to_road is absent")
def test_real__carla_in_three_formats() -> None:
    source = SHARED / "carla_to_road" / "source"
    data = open_dataset(source / "train.json", class_names=["car"])
    assert (len(data), data.num_boxes, data.dropped) == (580, 1105, {})
    require_images(data)
    assert data.samples[0].boxes.tolist() == [[241, 181, 287, 218], [314, 193, 324, 201]]
    road = open_dataset(SHARED / "carla_to_road" / "target" / "val.json")
    assert (len(road), road.num_boxes) == (124, 93)
    voc, yolo_data = open_dataset(source / "voc"), open_dataset(source / "yolo")
    require_images(voc)
    assert len(voc) == len(yolo_data) == 40
    assert set(voc.class_names) == set(yolo_data.class_names)
    boxes = {sample.path.name: sample.boxes for sample in yolo_data.samples}
    for sample in voc.samples:  # the YOLO labels were made with another rounding: half a pixel in all
        np.testing.assert_allclose(sample.boxes, boxes[sample.path.name], atol=1.01)


@pytest.mark.skipif(not (SHARED / "formats").is_dir(), reason="shared/data/formats is absent")
def test_real__kitti_and_bdd100k() -> None:
    data = open_dataset(SHARED / "formats" / "kitti")
    require_images(data)
    assert data.class_names == ("Car", "Cyclist", "Pedestrian", "Truck")
    np.testing.assert_allclose(data.samples[0].boxes[0], [599.41, 156.40, 629.75, 189.25], rtol=1e-6)
    bdd = open_dataset(SHARED / "formats" / "bdd100k" / "example_ignore_annotation.json")
    assert (len(bdd), bdd.class_names, bdd.samples[0].ignore.tolist()) == (2, ("person",), [True, False])
