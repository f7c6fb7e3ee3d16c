"""A dozen tiny images a side of each benchmark, in exactly the layouts that the real ones have, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np

HEIGHT, WIDTH = 64, 96
COLOURS = {"car": (200, 40, 40), "person": (40, 80, 220)}  # BGR
CITIES = {"train": ("aachen", "bremen"), "val": ("lindau",)}
BETAS = ("0.005", "0.01", "0.02")

Box = tuple[int, int, int, int]


class Scenes:
    """Boxes and pictures, the same for the same seed; every sixth picture has no object."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.count = 0

    def boxes(self, names: tuple[str, ...] = ("car", "person")) -> list[tuple[str, Box]]:
        self.count += 1
        if self.count % 6 == 0:
            return []
        x, y = int(self.rng.integers(2, 58)), int(self.rng.integers(2, 28))
        w, h = int(self.rng.integers(20, 34)), int(self.rng.integers(16, 30))
        return [(names[self.count % len(names)], (x, y, x + w, y + h))]

    def picture(self, boxes: list[tuple[str, Box]], path: Path, haze: float = 0.0) -> None:
        image = self.rng.integers(90, 130, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        for name, (x1, y1, x2, y2) in boxes:
            image[y1:y2, x1:x2] = COLOURS[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), (image * (1 - haze) + 200 * haze).astype(np.uint8))


def write_cityscapes(root: Path, *, foggy: bool = False, count: int = 12) -> None:
    """``gtFine`` with polygons, groups, road and a deleted object; ``leftImg8bit``, and ``leftImg8bit_foggy``."""
    scenes = Scenes(1)
    for split, cities in CITIES.items():
        for i in range(count if split == "train" else count // 2):
            city = cities[i % len(cities)]
            stem = f"{city}_{i:06d}_000019"
            boxes = scenes.boxes()
            objects: list[dict[str, Any]] = [{"label": "road", "polygon": [[0, 40], [95, 40], [95, 63]]}]
            objects += [{"label": n, "polygon": [[a, b], [c, b], [c, d], [a, d]]} for n, (a, b, c, d) in boxes]
            objects.append({"label": "persongroup", "polygon": [[1, 1], [9, 1], [9, 9]]})
            objects.append({"label": "car", "polygon": [[0, 0], [9, 0], [9, 9]], "deleted": 1})
            polygons = root / "gtFine" / split / city / f"{stem}_gtFine_polygons.json"
            polygons.parent.mkdir(parents=True, exist_ok=True)
            polygons.write_text(json.dumps({"imgHeight": HEIGHT, "imgWidth": WIDTH, "objects": objects}), "utf-8")
            scenes.picture(boxes, root / "leftImg8bit" / split / city / f"{stem}_leftImg8bit.png")
            for beta in BETAS if foggy else ():
                name = f"{stem}_leftImg8bit_foggy_beta_{beta}.png"
                scenes.picture(boxes, root / "leftImg8bit_foggy" / split / city / name, haze=20 * float(beta))


def write_bdd100k(root: Path, count: int = 12) -> None:
    """One json a split with attributes, names of the first release; every third frame is at night."""
    scenes = Scenes(2)
    for split in ("train", "val"):
        frames = []
        for i in range(count):
            name, boxes = f"{split[0]}{i:07x}-{i:08x}.jpg", scenes.boxes()
            labels: list[dict[str, Any]] = [
                {
                    "id": k,
                    "category": category,
                    "manualShape": True,
                    "attributes": {"occluded": False, "truncated": False, "trafficLightColor": "none"},
                    "box2d": dict(zip(("x1", "y1", "x2", "y2"), map(float, box), strict=True)),
                }
                for k, (category, box) in enumerate(boxes)
            ]
            road = {"vertices": [[0, 40], [95, 40]], "types": "LL", "closed": True}
            labels.append({"id": 90, "category": "drivable area", "attributes": {}, "poly2d": [road]})
            hours = {"weather": "clear", "scene": "city street", "timeofday": "night" if i % 3 == 2 else "daytime"}
            frames.append({"name": name, "attributes": hours, "timestamp": 10000, "labels": labels})
            scenes.picture(boxes, root / "images" / "100k" / split / name)
        path = root / "labels" / f"bdd100k_labels_images_{split}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(frames), "utf-8")


def write_sim10k(root: Path, count: int = 12) -> None:
    """``VOC2012`` with ``Annotations`` and ``JPEGImages``; one car of four is marked difficult."""
    scenes = Scenes(3)
    for i in range(count):
        boxes = scenes.boxes(("car",))
        objects = "".join(
            f"<object><name>car</name><pose>Unspecified</pose><truncated>0</truncated>"
            f"<difficult>{int(i % 4 == 3)}</difficult><bndbox><xmin>{x1 + 1}</xmin><ymin>{y1 + 1}</ymin>"
            f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
            for _, (x1, y1, x2, y2) in boxes
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        xml = root / "VOC2012" / "Annotations" / f"{i + 3384645}.xml"
        xml.parent.mkdir(parents=True, exist_ok=True)
        head = f"<folder>VOC2012</folder><filename>{xml.stem}.jpg</filename>"
        xml.write_text(f"<annotation>{head}{size}{objects}</annotation>", "utf-8")
        scenes.picture(boxes, root / "VOC2012" / "JPEGImages" / f"{xml.stem}.jpg")


def write_kitti(root: Path, count: int = 12) -> None:
    """``training/image_2`` and ``label_2``: Car, Pedestrian, and DontCare in every file."""
    scenes = Scenes(4)
    kinds = {"car": "Car", "person": "Pedestrian"}
    for i in range(count):
        boxes = scenes.boxes()
        lines = [
            f"{kinds[name]} 0.00 0 -1.57 {x1}.00 {y1}.00 {x2}.00 {y2}.00 2.85 2.63 12.34 0.47 1.49 69.44 -1.56"
            for name, (x1, y1, x2, y2) in boxes
        ]
        lines.append("DontCare -1 -1 -10 1.00 1.00 9.00 9.00 -1 -1 -1 -1000 -1000 -1000 -10")
        label = root / "training" / "label_2" / f"{i:06d}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text("\n".join(lines) + "\n", "utf-8")
        scenes.picture(boxes, root / "training" / "image_2" / f"{i:06d}.png")


def write_benchmark(protocol: str, root: Path) -> None:
    """All data that a protocol of samples/protocols needs, under the names it has there."""
    write_cityscapes(root / "cityscapes", foggy=protocol.startswith("c2f"))
    if protocol == "c2b":
        write_bdd100k(root / "bdd100k")
    elif protocol == "k2c":
        write_kitti(root / "kitti")
    elif protocol == "s2c":
        write_sim10k(root / "sim10k")
