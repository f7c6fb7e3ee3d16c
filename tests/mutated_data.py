"""Small valid data sets of every format, and seeded mutations that no reader may answer with a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

# what a field of an annotation can hold when a program or a person goes wrong
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.0, 1e308, -1e308, 1e39, 10**30, -(10**400), float("nan"), 1e999),
    *("", " ", "0", "1", "7", "nan", "inf", "1e999", "-1", "1,5", "car", "\ud800", "\udcff", "a\0b", "a\nb", "\u2028"),
    *("/", "..", ".", "../../..", "//", "C:\\x\\y.jpg", "x" * 5000, "%", "%zz", "%00.png", "http://h/?d=a", "9" * 5000),
    *([], [[]], [0], ["0"], [None], [1, 2], [1, 2, 3, 4, 5], ["a", {}], {}, {"a": 1}, {"x1": []}, [[1, 2], [3]]),
)
# what a token of a text file can become
TOKENS = (
    *" \t\n\r\0<>&{}[]:#\"'~/\\=\u2028\ufeff\u0661\u00e9\u00bd",
    *("nan", "-inf", "1e999", "1e400", "-1", "2", "0.5", "999999999999", "x", "1_0", "0x10", "true", "null"),
    *("&x;", "]]>", "!!int", "*a", "&a", "..", "%20", "==", "", "- ", "1 -1", "9" * 5000, "a" * 5000),
)
# what stands for a whole file
FILES = (
    *(b"", b" ", b"\n\n", b"\0" * 64, b"\xff\xfe", b"\xff", b"\x80abc", b"\xfe\xff\0", b"[" * 20000, b'{"a":' * 20000),
    *(b"[]", b"{}", b"null", b"0", b'"a"', b"[[]]", b"[{}]", b"NaN", b"1e999", b"9" * 5000, b"\xef\xbb\xbf"),
    *(b"<a>" * 20000, b"<annotation/>", b'<?xml version="1.0" encoding="gb2312"?><annotation>\xb3\xb5</annotation>'),
    *(b'<?xml version="1.0" encoding="no-such"?><a/>', b'<?xml version="1.0" encoding="hex"?><a/>', b"%PDF-1.4\x80"),
    *(b'<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>', "车".encode("gb18030"), "车".encode("utf-16")),
    *(b"a: &a [*a]", b"? [a]\n: b", b"a: !!python/name:os.system x", b"- " * 20000, b"a = " + b"[" * 20000),
)


@dataclass(frozen=True)
class Valid:
    """A data set without faults.

    Attributes:
        files: content by path.
        opened: path to give to ``open_dataset``.
        mutated: paths of the files that are mutated.
        images: paths of the images, 16 x 12.
    """

    files: dict[str, bytes]
    opened: str
    mutated: tuple[str, ...]
    images: tuple[str, ...]

    def write(self, root: Path) -> None:
        """Lay the files out below a folder."""
        picture = cv2.imencode(".png", np.zeros((12, 16, 3), np.uint8))[1].tobytes()
        for name, content in (*self.files.items(), *((name, picture) for name in self.images)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)


def as_bytes(document: Any) -> bytes:
    return json.dumps(document).encode()


def valid_coco() -> Valid:
    document = {
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}],
        "images": [{"id": i, "file_name": f"{i}.png", "width": 16, "height": 12} for i in (1, 2)],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [2, 3, 4, 5], "iscrowd": 0, "area": 20},
            {"id": 2, "image_id": 1, "category_id": 2, "segmentation": [[1, 1, 9, 1, 9, 9]], "iscrowd": 1},
            {"id": 3, "image_id": 2, "category_id": 2, "bbox": [8, 3, 4, 5]},
        ],
    }
    return Valid({"a.json": as_bytes(document)}, "a.json", ("a.json",), ("1.png", "2.png"))


def valid_bdd100k() -> Valid:
    corners = {"x1": 1, "y1": 2, "x2": 9, "y2": 8}
    outline = [{"vertices": [[1, 1], [5, 1], [5, 6]], "types": "LLL", "closed": True}]
    labels = [
        {"category": "car", "box2d": corners, "attributes": {"crowd": False}},
        {"category": "bus", "poly2d": outline},
        {"category": "lane/road curb", "poly2d": outline},
    ]
    frames = [
        {"name": "1.png", "videoName": "v", "size": {"width": 16, "height": 12}, "timestamp": 1, "labels": labels},
        {"name": "2.png", "attributes": {}, "labels": []},
    ]
    return Valid({"a.json": as_bytes(frames)}, "a.json", ("a.json",), ("1.png", "2.png"))


def valid_cityscapes() -> Valid:
    objects = [
        {"label": "car", "polygon": [[1, 2], [9, 2], [9, 8]]},
        {"label": "cargroup", "polygon": [[1, 2], [9, 2], [9, 9]], "deleted": 0},
        {"label": "road", "polygon": [[0, 0], [15, 0], [15, 11]]},
    ]
    document = {"imgWidth": 16, "imgHeight": 12, "objects": objects}
    name = "gtFine/val/ulm/ulm_1_gtFine_polygons.json"
    files = {name: as_bytes(document), "d.toml": b'format = "cityscapes"\nsplit = "val"\n'}
    return Valid(files, "d.toml", (name,), ("leftImg8bit/val/ulm/ulm_1_leftImg8bit.png",))


def valid_voc() -> Valid:
    box = "<bndbox><xmin>2</xmin><ymin>3</ymin><xmax>9</xmax><ymax>8</ymax></bndbox>"
    size = "<size><width>16</width><height>12</height><depth>3</depth></size>"
    content = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f"<annotation><filename>1.png</filename>{size}"
        f"<object><name>car</name><difficult>0</difficult>{box}</object>"
        f"<object><name>bus</name><difficult>1</difficult>{box}</object></annotation>"
    )
    files = {
        "Annotations/1.xml": content.encode(),
        "ImageSets/Main/val.txt": b"1 1\n",
        "d.toml": b'format = "voc"\nsplit = "val"\n',
    }
    return Valid(files, "d.toml", ("Annotations/1.xml", "ImageSets/Main/val.txt"), ("JPEGImages/1.png",))


def valid_yolo() -> Valid:
    files = {
        "data.yaml": b"path: .\ntrain: images/train\nval: [list.txt]\nnc: 2\nnames:\n  0: car\n  1: bus\n",
        "labels/train/1.txt": b"0 0.5 0.5 0.25 0.5\n1 0.25 0.5 0.25 0.5\n",
        "labels/train/2.txt": b"1 0.1 0.1 0.5 0.1 0.5 0.5 0.1 0.5\n0 0.5 0.5 0.2 0.2\n",
        "list.txt": b"./images/train/1.png\nimages/train/2.png\n",
        "d.toml": b'format = "yolo"\nannotations = "data.yaml"\nsplit = "val"\n',
    }
    mutated = ("labels/train/1.txt", "labels/train/2.txt", "data.yaml", "list.txt")
    return Valid(files, "d.toml", mutated, ("images/train/1.png", "images/train/2.png"))


def valid_kitti() -> Valid:
    line = b"Car 0.00 0 -1.57 2 3 9 8 1.5 1.6 3.9 1.8 1.6 9.0 -1.5\nDontCare -1 -1 -10 1 1 5 5 -1 -1 -1 -1 -1 -1 -1\n"
    files = {"label_2/1.txt": line, "label_2/2.txt": b"Van" + line[3:], "ImageSets/train.txt": b"1\n2\n"}
    return Valid(files, ".", ("label_2/1.txt",), ("image_2/1.png", "image_2/2.png"))


def valid_toml() -> Valid:
    coco = valid_coco()
    content = (
        'format = "coco"\nroot = "."\nannotations = "a.json"\nimages = "."\nclasses = ["car", "person"]\n'
        'ignore = ["tram"]\n\n[class_map]\nbus = "person"\n'
    )
    return Valid({**coco.files, "d.toml": content.encode()}, "d.toml", ("d.toml",), coco.images)


READERS: dict[str, Callable[[], Valid]] = {
    "coco": valid_coco,
    "voc": valid_voc,
    "yolo": valid_yolo,
    "kitti": valid_kitti,
    "bdd100k": valid_bdd100k,
    "cityscapes": valid_cityscapes,
    "toml": valid_toml,
}


def mutations(valid: Valid, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Contents to put in the place of a file, one at a time.

    Args:
        valid: what to mutate.
        count: how many.
        seed: of the draws; the same mutations for the same seed.
    """
    draw = random.Random(seed)
    for i in range(count):
        name = draw.choice(valid.mutated)
        content = valid.files[name]
        if i < len(FILES) * 2:
            yield name, FILES[i // 2]
        elif name.endswith(".json") and draw.random() < 0.8:
            yield name, _with_another_value(json.loads(content), draw)
        else:
            yield name, _with_another_token(content, draw)


def _with_another_value(document: Any, draw: random.Random) -> bytes:
    document = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 2))):
        places = list(_places(document))
        holder, key = draw.choice(places)
        action = draw.random()
        if action < 0.7:
            holder[key] = draw.choice(VALUES)
        elif action < 0.85:
            del holder[key]
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[draw.choice(("id", "name", "labels", "bbox", "x"))] = draw.choice(VALUES)
        if not list(_places(document)):
            break
    return as_bytes(document)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    keys = range(len(document)) if isinstance(document, list) else document if isinstance(document, dict) else ()
    for key in list(keys):
        yield document, key
        yield from _places(document[key])


def _with_another_token(content: bytes, draw: random.Random) -> bytes:
    kind = draw.random()
    if kind < 0.15:  # bytes, as a broken disk leaves them
        at = draw.randrange(len(content))
        return content[:at] + bytes(draw.randrange(256) for _ in range(draw.choice((0, 1, 4)))) + content[at + 1 :]
    if kind < 0.25:
        return content[: draw.randrange(len(content))]
    if kind < 0.3:
        return content.decode().encode(draw.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")))
    text = content.decode()
    starts = [i for i in range(len(text)) if i == 0 or text[i - 1] in " <>\n[],:/\"'="]
    at = draw.choice(starts)
    end = at
    while end < len(text) and text[end] not in " <>\n[],:/\"'=":
        end += 1
    token = draw.choice(TOKENS)
    if draw.random() < 0.2:  # beside the token instead of in its place
        end = at
        token += " "
    return (text[:at] + token + text[end:]).encode("utf-8", "surrogatepass")
