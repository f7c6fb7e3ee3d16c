from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_model import ANSWER, HEIGHT, WIDTH, tiny_bundle, tiny_manifest, tiny_onnx

from ptedge.artifacts.bundle import write_bundle
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.errors import ArtifactError, BackendError
from ptedge.preprocess import Letterbox

IMAGE = np.zeros((128, 192, 3), np.uint8)  # twice the input: scale 0.5
NOTHING = {"boxes": [], "scores": [], "labels": [], "sigma": [], "entropy": []}


def test_detect__undoes_letterbox_and_calibrates_sigma_of_schema_1(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", sigma_scale=(1.0, 2.0, 3.0, 0.5), schema=1)
    predictor: Predictor = open_predictor(bundle.path, "cpu")
    found = predictor.detect(IMAGE)
    np.testing.assert_allclose(found.boxes, [[16, 32, 80, 96], [100, 20, 180, 60]])  # divided by 0.5
    np.testing.assert_allclose(found.sigma[0], [1 * 1 / 0.5, 2 * 2 / 0.5, 3 * 3 / 0.5, 4 * 0.5 / 0.5])
    np.testing.assert_allclose(found.scores, [0.9, 0.6])
    assert found.labels.tolist() == [0, 1] and found.labels.dtype == np.int64
    assert predictor.class_names == ("car", "person")
    assert predictor.input_size == (HEIGHT, WIDTH)
    assert predictor.model_hash == bundle.model_hash
    predictor.close()


def test_detect__the_graph_has_applied_what_the_manifest_says(tmp_path: Path) -> None:
    calibration = SideCalibration((0.1, 0, 0, 0), (1.0, 2.0, 3.0, 0.5), origin=CalibrationOrigin(boxes=10))
    bundle = write_bundle(tmp_path / "b", tiny_manifest().with_calibration(calibration), tiny_onnx())
    found = open_predictor(bundle.path, "cpu").detect(IMAGE)
    np.testing.assert_allclose(found.boxes[0], [16, 32, 80, 96])
    np.testing.assert_allclose(found.sigma[0], [2, 4, 6, 8])  # of the graph, divided by the letterbox's 0.5


def test_detect__bare_onnx_gives_the_same(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    one, two = BundlePredictor(bundle.path, "cpu"), BundlePredictor(bundle.model_path, "cpu")
    assert one.model_hash == two.model_hash
    np.testing.assert_array_equal(one.detect(IMAGE).boxes, two.detect(IMAGE).boxes)


def test_detect__nothing_found(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", tiny_onnx(NOTHING))
    assert len(BundlePredictor(bundle.path, "cpu").detect(IMAGE)) == 0


def test_detect_batch__fills_the_last_group(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", tiny_onnx(batch=2), batch=2)
    predictor = BundlePredictor(bundle.path, "cpu")
    found = predictor.detect_batch([IMAGE, IMAGE[:64, :96], IMAGE])
    assert [float(d.boxes[0, 2]) for d in found] == [80.0, 40.0, 80.0]
    assert predictor.detect_batch([]) == []


def test_preprocess__places_and_fills(tmp_path: Path) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b", tiny_onnx(batch=2), batch=2).path, "cpu")
    image = np.full((32, 96, 3), (10, 20, 30), np.uint8)  # upper half of the input
    array, letterboxes = predictor.preprocess([image])
    assert array.shape == (2, 3, HEIGHT, WIDTH) and len(letterboxes) == 1
    assert array[0, :, 0, 0].tolist() == [10, 20, 30]
    assert array[0, :, 40, 0].tolist() == array[1, :, 0, 0].tolist() == [124, 116, 104]


def test_preprocess__quickly_where_asked(tmp_path: Path) -> None:
    path = tiny_bundle(tmp_path / "b").path
    image = np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8)
    letterbox = Letterbox(300, 200, HEIGHT, WIDTH)
    for quick in (False, True):
        array, _ = BundlePredictor(path, "cpu", quick_shrink=quick).preprocess([image])
        np.testing.assert_array_equal(array[0].transpose(1, 2, 0), letterbox.image(image, quick=quick))


@pytest.mark.parametrize("image", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_preprocess__refuses_what_is_no_image(tmp_path: Path, image: np.ndarray) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b").path, "cpu")
    with pytest.raises(BackendError, match=r"uint8 \[height, width, 3\]"):
        predictor.detect(image)


def test_detect__counts_unconverged_suppression(tmp_path: Path) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b", tiny_onnx(converged=0)).path, "cpu")
    predictor.detect_batch([IMAGE, IMAGE])
    assert predictor.unconverged == 2


@pytest.mark.parametrize("name", ["boxes", "scores", "sigma", "entropy"])
def test_detect__non_finite_output_is_an_error(tmp_path: Path, name: str) -> None:
    answer = dict(ANSWER) | {name: np.full_like(np.array(ANSWER[name], np.float32), np.nan)}
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b", tiny_onnx(answer)).path, "cpu")
    with pytest.raises(BackendError, match=f"returned {name} that are not finite"):
        predictor.detect(IMAGE)


def test_detect__label_without_a_name(tmp_path: Path) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b", class_names=("car",)).path, "cpu")
    with pytest.raises(BackendError, match="returned label 1, but its manifest has 1 classes"):
        predictor.detect(IMAGE)


def test_bundle_predictor__graph_and_manifest_differ(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", input_size=(128, 96))
    with pytest.raises(ArtifactError, match="not the graph its manifest describes"):
        BundlePredictor(bundle.path, "cpu")
