"""Another detector's file: documents, lists, classes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ptedge.errors import InputError
from ptedge.training.batches.foreign_file import read_foreign

BOX = {"bbox": [10, 20, 30, 40], "score": 0.5}
CLASSES = ("car", "person")
IMAGES = [{"id": 7, "file_name": "a.jpg", "width": 96, "height": 64}, {"id": 8, "file_name": "cam/b.jpg"}]
CATEGORIES = [{"id": 3, "name": "person"}, {"id": 5, "name": "lorry"}, {"id": 6, "name": "automobile"}]


def write(tmp_path: Path, document: Any, name: str = "found.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(document), "utf-8")
    return path


def entry(image: Any, category: Any, **changes: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, **BOX, **changes}


def test_read_foreign__a_document(tmp_path: Path) -> None:
    rows = [entry(7, 3), entry(7, 5), entry(9, 3), entry(7, 6, bbox=[0, 0, 4, 4]), entry(7, 3, bbox=[0, 0, 0, 4])]
    path = write(tmp_path, {"images": IMAGES, "categories": CATEGORIES, "annotations": [*rows, entry(7, 1)]})
    file = read_foreign(path, CLASSES, {"automobile": "car"})
    assert list(file.images) == ["a.jpg", "cam/b.jpg"] and file.num_boxes == 2
    found = file.images["a.jpg"]
    assert found.boxes.tolist() == [[10, 20, 40, 60], [0, 0, 4, 4]] and found.labels.tolist() == [1, 0]
    assert found.scores.tolist() == [0.5, 0.5] and found.size == (96, 64)
    assert len(file.images["cam/b.jpg"]) == 0 and file.images["cam/b.jpg"].size is None
    assert file.dropped == {
        "image id not listed": 1,
        "no area": 1,
        "category id not listed": 1,
        "of classes that the checkpoint has not (1 lorry)": 1,
    }
    assert file.notes == ()


def test_read_foreign__a_list_speaks_of_a_listing(tmp_path: Path) -> None:
    listing = write(tmp_path, {"images": IMAGES, "categories": CATEGORIES, "annotations": []}, "labels.json")
    file = read_foreign(write(tmp_path, [entry(8, 3)]), CLASSES, listing=listing)
    assert [(name, len(found)) for name, found in file.images.items()] == [("a.jpg", 0), ("cam/b.jpg", 1)]


@pytest.mark.parametrize(
    ("image", "more", "key"),
    [
        (42, {}, 42),
        ("42", {}, 42),
        ("000042", {}, "000042"),
        ("b.jpg", {}, "b.jpg"),
        (42, {"file_name": "x/c.jpg"}, "x/c.jpg"),
    ],
)
def test_read_foreign__names_of_a_list_alone(tmp_path: Path, image: Any, more: dict[str, str], key: int | str) -> None:
    file = read_foreign(write(tmp_path, [entry(image, 2, **more)]), CLASSES)
    assert list(file.images) == [key] and file.images[key].labels.tolist() == [1]
    assert file.notes == (
        f"{tmp_path / 'found.json'} names no categories: their numbers are taken as COCO counts, 1 car, 2 person",
    )


def test_read_foreign__categories_of_a_list_by_class_map(tmp_path: Path) -> None:
    path = write(tmp_path, [entry("a", 0), entry("a", 9), entry("a", "person")])
    file = read_foreign(path, CLASSES, {"0": "car"})
    assert file.images["a"].labels.tolist() == [0, 1]
    assert file.dropped == {"of classes that the checkpoint has not (1 9)": 1}


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan"), None, "0.5", True])
def test_read_foreign__scores_are_probabilities(tmp_path: Path, score: Any) -> None:
    with pytest.raises(InputError, match=r"entry 1 has the score .*; it must be a number from 0 to 1"):
        read_foreign(write(tmp_path, [entry("a", 1), entry("a", 1, score=score)]), CLASSES)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("text", "neither a COCO document nor a results list"),
        ({"images": []}, "a COCO document has a list annotations"),
        ([{"image_id": 1}], "entry 0 needs image_id, category_id, bbox and score"),
        ([5], "entry 0 needs"),
        ([entry("a", 1, bbox=[1, 2, 3])], "entry 0 has the bbox"),
        ([entry(None, 1)], "entry 0 has the image_id None"),
        ([entry("a", None)], "entry 0 has the category_id None"),
        ([], "holds no box of car, person: it is empty"),
        ([entry("a", 9)], "holds no box of car, person: 1 of classes that the checkpoint has not"),
    ],
)
def test_read_foreign__what_is_refused(tmp_path: Path, document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_foreign(write(tmp_path, document), CLASSES)


def test_read_foreign__a_listing_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no images"):
        read_foreign(write(tmp_path, [entry("a", 1)]), CLASSES, listing=write(tmp_path, [], "other.json"))
