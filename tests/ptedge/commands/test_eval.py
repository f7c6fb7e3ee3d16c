from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray

from ptedge.cli import cli
from ptedge.commands.eval import evaluate_model, format_table
from ptedge.commands.evaluation_files import draw_comparison, worst_images
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError, InputError

SIGMA = 2.0


class SquareFinder:
    """Finds the bright square of an image, one pixel off to the right; a person where the square is red."""

    class_names = ("car", "person")
    input_size = (64, 96)
    model_hash = "ab" * 32

    def __init__(self) -> None:
        self.closed = False

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        rows, columns = np.nonzero(image[..., 0] > 128)
        if not len(rows):
            return Detections.empty()
        box = [columns.min() + 1, rows.min(), columns.max() + 2, rows.max() + 1]
        red = image[rows[0], columns[0], 1] < 128
        return Detections(
            boxes=np.array([box], np.float32),
            scores=np.array([0.9], np.float32),
            labels=np.array([int(red)], np.int64),
            sigma=np.full((1, 4), SIGMA, np.float32),
            entropy=np.zeros(1, np.float32),
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three images: a car, a person, nothing; category ids with a gap."""
    images, annotations = [], []
    for i, (color, category) in enumerate([((255, 255, 255), 3), ((255, 0, 0), 7), (None, 0)], start=1):
        image = np.zeros((60, 80, 3), np.uint8)
        if color is not None:
            image[20:40, 10:50] = color
            box = {"bbox": [10, 20, 40, 20], "area": 800, "iscrowd": 0}
            annotations.append({"id": i, "image_id": i * 10, "category_id": category, **box})
        cv2.imwrite(str(tmp_path / f"{i}.png"), cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
        images.append({"id": i * 10, "file_name": f"{i}.png", "width": 80, "height": 60})
    categories = [{"id": 3, "name": "car"}, {"id": 7, "name": "person"}]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> SquareFinder:
    finder = SquareFinder()
    monkeypatch.setattr("ptedge.backends.predictor.open_predictor", lambda path, backend, threads: finder)
    return finder


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["eval", *map(str, arguments)], catch_exceptions=False)


def test_evaluate_model__scores_and_judges_sigma(data: Path) -> None:
    seen: list[tuple[int, int]] = []
    dataset = open_dataset(data, class_names=("car", "person"))
    got = evaluate_model(SquareFinder(), dataset, lambda done, total: seen.append((done, total)))
    assert (got.metrics.images, got.metrics.boxes) == (3, 2)
    # the box is 40 wide and 1 off: IoU 39/41 = 0.951, right at every threshold up to 0.95
    assert (got.metrics.ap50, got.metrics.ap75, got.metrics.ap) == (1.0, 1.0, 1.0)
    assert got.sigma.matches == 2
    assert got.sigma.coverage_1 == 1.0
    assert got.sigma.rmse == pytest.approx(0.5**0.5)
    assert [len(found) for found in got.detections] == [1, 1, 0]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_evaluate_model__corrupt_or_missing_image_is_named(data: Path) -> None:
    dataset = open_dataset(data, class_names=("car", "person"))
    (data.parent / "2.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"2\.png"):
        evaluate_model(SquareFinder(), dataset)
    (data.parent / "2.png").unlink()
    with pytest.raises(InputError, match=r"2\.png"):
        evaluate_model(SquareFinder(), dataset)


def test_evaluate_model__image_of_another_size_is_refused(data: Path) -> None:
    dataset = open_dataset(data, class_names=("car", "person"))
    cv2.imwrite(str(data.parent / "3.png"), np.zeros((30, 40, 3), np.uint8))
    with pytest.raises(InputError, match=r"3\.png is 40 x 30, but its labels are for 80 x 60"):
        evaluate_model(SquareFinder(), dataset)


def test_evaluate_model__other_classes_are_refused(data: Path) -> None:
    dataset = open_dataset(data)
    finder = SquareFinder()
    finder.class_names = ("person", "car")
    with pytest.raises(ClassMismatchError):
        evaluate_model(finder, dataset)


def test_evaluate_model__no_images(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no images"):
        evaluate_model(SquareFinder(), Dataset(tmp_path, "coco", ("car", "person"), ()))


def test_eval__json_is_one_document(data: Path, finder: SquareFinder) -> None:
    result = invoke("model.pt", data, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert {"images", "boxes", "AP50", "AP75", "AP", "per_class", "sigma", "model", "data"} <= set(document)
    assert document["AP50"] == 1.0
    assert document["per_class"]["person"] == {"AP50": 1.0, "AP75": 1.0, "AP": 1.0, "boxes": 1}
    assert document["sigma"]["mean_sigma"] == SIGMA
    assert document["input_size"] == [64, 96]
    assert "3/3 images" in result.stderr
    assert finder.closed


def test_eval__table_shows_classes_counts_and_sigma(data: Path, finder: SquareFinder) -> None:
    result = invoke("model.pt", data)
    assert result.exit_code == 0
    assert "coco: 3 images, 2 boxes" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["car", "1", "1.000", "1.000", "1.000"] in lines
    assert ["all", "2", "1.000", "1.000", "1.000"] in lines
    assert "over 2 true positives" in result.stdout


def test_eval__limit_takes_the_first_images(data: Path, finder: SquareFinder) -> None:
    document = json.loads(invoke("model.pt", data, "--json", "--limit", "1").stdout)
    assert (document["images"], document["boxes"]) == (1, 1)
    assert document["per_class"]["person"] == {"AP50": None, "AP75": None, "AP": None, "boxes": 0}


def test_eval__out_holds_results_detections_and_pictures(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    result = invoke("model.pt", data, "--json", "--out", out, "--pictures", "2")
    assert json.loads((out / "results.json").read_text()) == json.loads(result.stdout)
    rows = json.loads((out / "detections.json").read_text())
    # ids are those of the user's file
    assert [(row["image_id"], row["category_id"]) for row in rows] == [(10, 3), (20, 7)]
    assert rows[0]["bbox"] == [11, 20, 40, 20]
    assert rows[0]["sigma"] == [SIGMA] * 4
    pictures = sorted((out / "pictures").iterdir())
    assert [picture.name for picture in pictures] == ["001-1.jpg", "002-2.jpg"]
    assert cv2.imread(str(pictures[0])).shape == (60, 80, 3)


def test_eval__detections_file_gives_pycocotools_the_same_ap(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    invoke("model.pt", data, "--out", tmp_path / "out")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(data))
        run = COCOeval(truth, truth.loadRes(str(tmp_path / "out" / "detections.json")), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    assert run.stats[0] == pytest.approx(json.loads((tmp_path / "out" / "results.json").read_text())["AP"])


def test_eval__help_shows_an_example() -> None:
    assert "ptedge eval runs/" in invoke("--help").output


def test_format_table__nothing_found() -> None:
    document: dict[str, Any] = {
        **{"model": "m", "model_hash": "00", "input_size": [16, 16], "data": "d", "data_format": "voc"},
        **{"images": 1, "boxes": 0, "AP50": None, "AP75": None, "AP": None, "dropped": {"no area": 2}},
        **{"per_class": {"car": {"AP50": None, "AP75": None, "AP": None, "boxes": 0}}, "sigma": {"matches": 0}},
    }
    text = format_table(document)
    assert "2 boxes, no area" in text
    assert ["car", "0", "-", "-", "-"] in [line.split() for line in text.splitlines()]
    assert "nothing to judge" in text


def make_sample(boxes: list[list[float]]) -> Sample:
    count = len(boxes)
    return Sample(
        path=Path("x.jpg"),
        width=80,
        height=60,
        boxes=np.array(boxes, np.float32).reshape(-1, 4),
        labels=np.zeros(count, np.int64),
        ignore=np.zeros(count, np.bool_),
        image_id=0,
    )


def test_worst_images__misses_and_sure_false_alarms_count() -> None:
    found = SquareFinder().detect(np.full((60, 80, 3), 255, np.uint8))
    right = make_sample([[1, 0, 80, 60]])
    dataset = Dataset(Path("d"), "coco", ("car",), (right, make_sample([]), make_sample([[0, 0, 5, 5]]), right))
    # right; false alarm; false alarm and miss; right
    assert worst_images([found] * 4, dataset) == [2, 1, 0, 3]


def test_draw_comparison__shows_labels_without_detections() -> None:
    image = np.zeros((60, 80, 3), np.uint8)
    drawn = draw_comparison(image, Detections.empty(), make_sample([[10, 10, 40, 40]]), ("car",))
    assert drawn[10, 25].tolist() == [255, 255, 255]
    assert not image.any()
