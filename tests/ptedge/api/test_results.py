from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.api.results import Detection, ImageDetections
from ptedge.detections import Detections
from ptedge.drawing.draw import draw_detections
from ptedge.errors import InputError, MissingExtraError

FOUND = Detections(
    boxes=np.array([[1, 2, 11, 22], [5, 5, 15, 25]], np.float32),
    scores=np.array([0.75, 0.5], np.float32),
    labels=np.array([1, 0]),
    sigma=np.array([[0.5, 1, 1.5, 2], [1, 1, 1, 1]], np.float32),
    entropy=np.array([0.25, 0.5], np.float32),
)
IMAGE = np.full((30, 40, 3), 100, np.uint8)


def made(image: np.ndarray | Path | None = IMAGE) -> ImageDetections:
    return ImageDetections.of(FOUND, ("car", "person"), image)


def test_detections__are_counted_iterated_and_indexed() -> None:
    first = Detection(1, "person", 0.75, (1, 2, 11, 22), (0.5, 1, 1.5, 2), 0.25)
    assert len(made()) == 2
    assert [one.name for one in made()] == ["person", "car"]
    assert made()[0] == next(iter(made())) == first
    assert made()[-1].name == made()[np.int64(1)].name == "car"  # type: ignore[call-overload]
    with pytest.raises(IndexError):
        made()[2]


def test_detections__slices_and_masks_keep_names_and_image() -> None:
    sure = made()[made().scores > 0.6]
    assert isinstance(sure, ImageDetections)
    assert (sure.names, sure.image is IMAGE) == (["person"], True)
    assert made()[1:].names == made()[np.array([1])].names == ["car"]
    assert len(made()[:0]) == 0 and list(made()[:0]) == []


def test_to_json__has_the_names_of_the_model() -> None:
    assert made().to_json() == FOUND.to_json(("car", "person"))


def test_to_supervision__carries_sigma() -> None:
    supervision = pytest.importorskip("supervision", reason="of the extra python")
    others = made().to_supervision()
    assert isinstance(others, supervision.Detections)
    np.testing.assert_array_equal(others.xyxy, FOUND.boxes)
    assert others.confidence.tolist() == [0.75, 0.5] and others.class_id.tolist() == [1, 0]
    assert others.data["class_name"].tolist() == ["person", "car"]
    np.testing.assert_array_equal(others[others.confidence > 0.6].data["sigma"], FOUND.sigma[:1])
    assert len(made()[:0].to_supervision()) == 0


def test_to_pandas__one_row_a_detection() -> None:
    pytest.importorskip("pandas", reason="of the extra python")
    table = made().to_pandas()
    assert list(table.columns[:7]) == ["label", "name", "score", "x1", "y1", "x2", "y2"]
    assert table.iloc[0].to_dict() == {
        **{"label": 1, "name": "person", "score": 0.75, "x1": 1, "y1": 2, "x2": 11, "y2": 22},
        **{"sigma_x1": 0.5, "sigma_y1": 1, "sigma_x2": 1.5, "sigma_y2": 2, "entropy": 0.25},
    }
    assert len(made()[:0].to_pandas()) == 0


@pytest.mark.parametrize("package", ["supervision", "pandas"])
def test_to_others__without_the_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'{package} is not installed.*"ptedge\[python\]"'):
        getattr(made(), f"to_{package}")()


def test_plot__draws_on_the_array_or_the_file(tmp_path: Path) -> None:
    expected = draw_detections(IMAGE, FOUND, ("car", "person"))
    np.testing.assert_array_equal(made().plot(), expected)
    cv2.imwrite(str(tmp_path / "a.png"), IMAGE)
    np.testing.assert_array_equal(made(tmp_path / "a.png").plot(), expected)
    assert made().plot(np.zeros((9, 9, 3), np.uint8)).shape == (9, 9, 3)
    with pytest.raises(InputError, match="carry no image"):
        made(None).plot()
