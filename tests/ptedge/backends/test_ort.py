from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_model import ANSWER, HEIGHT, WIDTH, tiny_bundle, tiny_onnx

from ptedge.backends.ort import BundlePredictor, Runner, cuda_device_count
from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.errors import ArtifactError, BackendError

IMAGE = np.zeros((128, 192, 3), np.uint8)  # twice the input: scale 0.5
NOTHING = {"boxes": [], "scores": [], "labels": [], "sigma": [], "entropy": []}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(tiny_onnx())
    return path


def test_infer__returns_every_output(model: Path) -> None:
    with Runner(model, "cpu", threads=1) as runner:
        outputs = runner.infer({"images": np.zeros((1, 3, HEIGHT, WIDTH), np.uint8)})
    assert runner.inputs == {"images": ((1, 3, HEIGHT, WIDTH), np.dtype(np.uint8))}
    assert outputs["num_detections"].tolist() == [2]
    np.testing.assert_array_equal(outputs["boxes"][0, :2], ANSWER["boxes"])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 3, HEIGHT, WIDTH), np.float32), "must be uint8, got float32"),
        (np.zeros((2, 3, HEIGHT, WIDTH), np.uint8), r"must have shape \[1, 3, 64, 96\], got \[2, 3, 64, 96\]"),
        (np.zeros((3, HEIGHT, WIDTH), np.uint8), "must have shape"),
    ],
)
def test_infer__refuses_wrong_input(model: Path, array: np.ndarray, words: str) -> None:
    with Runner(model, "cpu") as runner, pytest.raises(BackendError, match=words):
        runner.infer({"images": array})


def test_infer__wrong_name(model: Path) -> None:
    with (
        Runner(model, "cpu") as runner,
        pytest.raises(BackendError, match=r"takes the inputs \['images'\], got \['x'\]"),
    ):
        runner.infer({"x": np.zeros(1, np.uint8)})


def test_infer__closed_runner(model: Path) -> None:
    runner = Runner(model, "cpu")
    runner.close()
    runner.close()
    with pytest.raises(BackendError, match="closed"):
        runner.infer({"images": np.zeros((1, 3, HEIGHT, WIDTH), np.uint8)})


def test_infer__non_contiguous_input_gives_the_same(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "identity",
        [value("x", TensorProto.UINT8, [1, 2, 3])],
        [value("y", TensorProto.FLOAT, [1, 2, 3])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "i.onnx")
    array = np.arange(6, dtype=np.uint8).reshape(1, 3, 2).transpose(0, 2, 1)
    assert not array.flags.c_contiguous
    with Runner(tmp_path / "i.onnx", "cpu") as runner:
        np.testing.assert_array_equal(runner.infer({"x": array})["y"], [[[0, 2, 4], [1, 3, 5]]])


def test_runner__tensorrt_needs_an_engine(model: Path) -> None:
    with pytest.raises(BackendError, match="is an ONNX file; TensorRT runs the engines of a bundle: ptedge build"):
        Runner(model, "tensorrt")


def test_runner__unknown_backend(model: Path) -> None:
    with pytest.raises(BackendError, match="must be one of auto, tensorrt, cuda, cpu"):
        Runner(model, "gpu")


def test_runner__auto_says_why(model: Path) -> None:
    with Runner(model) as runner:
        assert runner.backend == ("cuda" if runner.reason == "a CUDA GPU answers" else "cpu")
        assert runner.reason
    with Runner(model, "cpu") as runner:
        assert (runner.backend, runner.reason) == ("cpu", "asked for")


@pytest.mark.skipif(cuda_device_count() > 0, reason="this machine has a GPU")
def test_runner__cuda_without_gpu(model: Path) -> None:
    with pytest.raises(BackendError, match=r"cannot run on CUDA: .*Choose --backend cpu"):
        Runner(model, "cuda")


@pytest.mark.skipif(cuda_device_count() > 0, reason="this machine has a GPU")
def test_runner__prints_nothing_without_gpu(model: Path) -> None:
    code = f"from pathlib import Path; from ptedge.backends.ort import Runner; Runner(Path({str(model)!r})).close()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_runner__broken_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(tiny_onnx()[:100])
    with pytest.raises(ArtifactError, match=r"cannot load .*m\.onnx.*ptedge export"):
        Runner(tmp_path / "m.onnx", "cpu")


def test_detect__undoes_letterbox_and_calibrates_sigma(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", sigma_scale=(1.0, 2.0, 3.0, 0.5))
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
