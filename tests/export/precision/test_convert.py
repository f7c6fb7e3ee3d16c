"""Float16 and int8 bundles: what is converted, what stays, and that they answer as the float32 one does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from places import SHARED
from tiny_detector import use_tiny_detector, write_pictures

from ptedge.artifacts.bundle import MODEL_NAME, open_bundle
from ptedge.artifacts.graph_sides import read_sides
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import ArtifactError, InputError
from ptedge.export.precision.convert import FEWEST_FRAMES, check_calibration
from ptedge.export.precision.graph_types import FLOAT32_ONLY, check_types
from ptedge.export.precision.int8_choice import LIMIT
from ptedge.export.precision.layers import find_layers, multiplications
from ptedge.export.to_bundle import export_checkpoint


def graph_of(bundle: Path) -> Any:
    return onnx.load(bundle / MODEL_NAME)


def types_of(proto: Any) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True).graph
    types = {t.name: t.data_type for t in graph.initializer}
    return types | {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}


def pictures(folder: Path) -> list[NDArray[np.uint8]]:
    return [cv2.imread(str(path))[..., ::-1].copy() for path in sorted((folder / "images").iterdir())]


@pytest.mark.parametrize(("precision", "sigma", "score"), [("fp16", 0.01, 0.01), ("int8", 0.05, 0.05)])
def test_export_checkpoint__answers_as_float32_does(tiny: Path, precision: str, sigma: float, score: float) -> None:
    reference, other = BundlePredictor(tiny / "fp32", "cpu", 1), BundlePredictor(tiny / precision, "cpu", 1)
    ratios, scores = [], []
    for picture in pictures(tiny):
        a, b = reference.detect(picture), other.detect(picture)
        assert len(a) > 0
        for k in range(len(a)):  # the same box, wherever it stands in the list
            near = np.abs(b.boxes - a.boxes[k]).max(1) + 100.0 * (b.labels != a.labels[k])
            if near.min() < 3:
                ratios.append(np.abs(b.sigma[near.argmin()] / a.sigma[k] - 1))
                scores.append(abs(b.scores[near.argmin()] - a.scores[k]))
    assert len(scores) > 60  # of 120
    assert np.median(ratios) < sigma
    assert np.median(scores) < score


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_export_checkpoint__inputs_outputs_and_operator_set_stay(tiny: Path, precision: str) -> None:
    proto, reference = graph_of(tiny / precision), graph_of(tiny / "fp32")
    assert list(proto.graph.input) == list(reference.graph.input)
    assert list(proto.graph.output) == list(reference.graph.output)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert proto.ir_version == reference.ir_version
    check_types([proto], precision)
    for other in {"fp32", "fp16", "int8"} - {precision}:
        with pytest.raises(ArtifactError, match=f"said to be {other}"):
            check_types([proto], other)


def test_export_checkpoint__float16_ends_before_the_predictors(tiny: Path) -> None:
    proto = graph_of(tiny / "fp16")
    types, layers = types_of(proto), find_layers(graph_of(tiny / "fp32"))
    seen = set()
    for node in proto.graph.node:
        kinds = {types[name] for name in (*node.input, *node.output) if name}
        if node.op_type in FLOAT32_ONLY or node.name in (*layers.predictors, *layers.stem):
            assert onnx.TensorProto.FLOAT16 not in kinds, node.name
            seen.add(node.op_type)
    assert {"Exp", "Sqrt", "Sigmoid", "Softmax", "TopK", "Greater", "Div", "Conv", "Gemm"} <= seen
    weights = {t.name: t.data_type for t in proto.graph.initializer}
    for node in proto.graph.node:
        if node.name in layers.weighted[1:]:
            assert weights[node.input[1]] == onnx.TensorProto.FLOAT16


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_export_checkpoint__calibration_stays_float32(tiny: Path, precision: str) -> None:
    model = open_bundle(tiny / precision).read_model()
    assert read_sides(model) == ((0, 0, 0, 0), (1, 1, 1, 1))


def test_export_checkpoint__float16_file_is_about_half(tiny: Path) -> None:
    full, half = ((tiny / name / MODEL_NAME).stat().st_size for name in ("fp32", "fp16"))
    constants = graph_of(tiny / "fp32").graph.initializer
    weights = sum(t.ByteSize() for t in constants if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) > 1)
    assert full - half > 0.4 * weights


def test_export_checkpoint__manifest_records_the_conversion(tiny: Path) -> None:
    assert open_bundle(tiny / "fp32").manifest.conversion.converted == 0
    half, int8 = (open_bundle(tiny / name).manifest for name in ("fp16", "int8"))
    assert (half.precision, half.conversion.converted, half.conversion.calibration_frames) == ("fp16", 4, 0)
    assert len(half.conversion.kept_float32) == 4  # the first convolution and three predictors
    assert half.conversion.kept_float16 == ()
    assert (int8.precision, int8.conversion.calibration_frames) == ("int8", 12)
    assert int8.conversion.calibration_method in ("percentile 99.99", "minmax")
    assert 0 < int8.conversion.int8_error <= LIMIT
    layers = find_layers(graph_of(tiny / "fp32"))
    read = {name: node for node in graph_of(tiny / "int8").graph.node for name in node.output}
    rounded = [
        node.name
        for node in graph_of(tiny / "int8").graph.node
        if node.name in layers.weighted and read[node.input[0]].op_type == "DequantizeLinear"
    ]
    assert 0 < len(rounded) == int8.conversion.converted
    named = [*rounded, *int8.conversion.kept_float16, *int8.conversion.kept_float32]
    assert sorted(named) == sorted([*layers.weighted, *layers.predictors])
    work = multiplications(graph_of(tiny / "fp32"))
    share = sum(work[name] for name in rounded) / sum(work.values())
    assert int8.conversion.share_of_multiplications == pytest.approx(share, abs=1e-4)


def test_export_checkpoint__int8_quantises_inputs_and_no_bias(tiny: Path) -> None:
    proto = graph_of(tiny / "int8")
    made_by = {name: node for node in proto.graph.node for name in node.output}
    constants = {t.name: t for t in proto.graph.initializer}
    layers = find_layers(graph_of(tiny / "fp32"))
    manifest = open_bundle(tiny / "int8").manifest
    assert find_layers(proto).weighted == layers.weighted  # the same are found in either graph
    for node in proto.graph.node:
        quantised = [made_by[n].op_type == "DequantizeLinear" for n in node.input[:2] if n in made_by]
        if node.name in set(layers.weighted) - {*manifest.conversion.kept_float16, *manifest.conversion.kept_float32}:
            assert quantised == [True, True], node.name
            assert constants[node.input[2]].data_type == onnx.TensorProto.FLOAT
            scale = onnx.numpy_helper.to_array(constants[made_by[node.input[1]].input[1]])
            assert scale.size == constants[node.input[2]].dims[0]  # one an output channel
        else:
            assert not any(quantised), node.name  # a shortcut or RoIAlign reads what was not rounded


def test_check_calibration__says_what_to_give() -> None:
    with pytest.raises(InputError, match="Add --calibrate FRAMES"):
        check_calibration("int8", None)
    with pytest.raises(InputError, match="leave it out"):
        check_calibration("fp32", "frames")
    check_calibration("fp16", "frames")


def test_export_checkpoint__too_few_frames(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)
    write_pictures(tmp_path, 2)
    with pytest.raises(InputError, match=f"holds 2 frames; int8 is calibrated on at least {FEWEST_FRAMES}"):
        export_checkpoint(tiny / "model.pt", tmp_path / "b", precision="int8", calibrate=str(tmp_path / "images"))
    assert not (tmp_path / "b").exists()


def test_export_checkpoint__no_layer_stands_int8(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)
    told: list[str] = []
    bundle, _ = export_checkpoint(
        tiny / "model.pt",
        tmp_path / "b",
        precision="int8",
        calibrate=str(tiny / "images"),
        int8_error=1e-6,
        tell=told.append,
    )
    conversion = bundle.manifest.conversion
    assert conversion.converted == 1 and conversion.int8_error > 1e-6
    assert re.fullmatch(r"int8: even /\S+ alone changes what the predictors give by \d\.\d%, above .* fp16", told[-1])


def test_export_checkpoint__int8_of_several_images_a_call(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_tiny_detector(monkeypatch)
    images = str(tiny / "images")
    export_checkpoint(tiny / "model.pt", tmp_path / "b", batch=5, precision="int8", calibrate=images)
    one, five = (BundlePredictor(path, "cpu", 1) for path in (tiny / "int8", tmp_path / "b"))
    for a, b in zip([one.detect(p) for p in pictures(tiny)[:5]], five.detect_batch(pictures(tiny)[:5]), strict=True):
        assert abs(len(a) - len(b)) <= 2  # calibrated on the same frames, the last of them three times
        assert abs(a.scores[0] - b.scores[0]) < 0.05


def test_export_checkpoint__int8_on_real_frames(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = sorted((SHARED / "carla_to_road/target/frames").glob("*"))[:10]
    if not frames:
        pytest.skip("no ../shared/data/carla_to_road beside the checkout")
    use_tiny_detector(monkeypatch)
    names = tmp_path / "frames.txt"
    names.write_text("\n".join(map(str, frames)))
    export_checkpoint(tiny / "model.pt", tmp_path / "b", precision="int8", calibrate=str(names))
    assert open_bundle(tmp_path / "b").manifest.conversion.calibration_frames == 10
    reference, other = BundlePredictor(tiny / "fp32", "cpu", 1), BundlePredictor(tmp_path / "b", "cpu", 1)
    picture = cv2.imread(str(frames[0]))[..., ::-1].copy()
    a, b = reference.detect(picture), other.detect(picture)
    assert abs(len(a) - len(b)) <= 2
    assert abs(a.scores[0] - b.scores[0]) < 0.05
    assert abs(a.sigma.mean() / b.sigma.mean() - 1) < 0.05
