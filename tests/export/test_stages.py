"""The one graph in two: what is cut, and that NumPy between the stages decides as the graph does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from small_graph import small_graph
from spread_detector import CONFIG, make_model, noise

from ptedge.artifacts.bundle import MODEL_NAME, SECOND_NAME, open_bundle
from ptedge.artifacts.calibrated_bundle import write_calibrated
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.split import rules_of
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.commands.inspect import describe
from ptedge.detector.config import ModelConfig
from ptedge.errors import ArtifactError
from ptedge.export.check_graph import check_stages
from ptedge.export.graph import StaticGraph
from ptedge.export.stages import cut_stages
from ptedge.export.to_bundle import export_checkpoint, make_manifest
from ptedge.export.verify.verify import verify_bundle
from ptedge.stages.select import Selector


@pytest.mark.parametrize(
    ("changes", "num_classes"),
    [
        ({}, 1),
        ({"score_rule": "certainty"}, 3),
        ({"sigma_rule": "own", "max_detections": 3}, 2),
        ({"probabilistic": False}, 2),
        ({"rpn_nms": 0.1, "score_threshold": 0.0}, 2),  # proposals leave rows over, and every pair is a candidate
        ({"rpn_test_top_n": (20, 10), "max_detections": 50}, 1),
        ({"score_threshold": 1.0}, 1),
    ],
)
def test_selector__decides_as_the_graph_does(changes: dict[str, object], num_classes: int) -> None:
    from ptedge.artifacts.checkpoint import Checkpoint

    config: ModelConfig = replace(CONFIG, **changes)  # type: ignore[arg-type]
    model = make_model(config, num_classes)
    with torch.no_grad():
        model.set_sides((0.1, -0.2, 0.3, -0.05), (2.0, 1.0, 0.5, 3.0))
        wanted, stages = StaticGraph(model).with_stages(noise(2))
    names = tuple(f"class {i}" for i in range(num_classes))
    manifest = make_manifest(Checkpoint(config, names, model.state_dict()), "", config.input_size, 2)
    rules = replace(rules_of(manifest), side_offset=(0.1, -0.2, 0.3, -0.05), sigma_scale=(2.0, 1.0, 0.5, 3.0))
    selector, arrays = Selector(rules), {name: value.numpy() for name, value in stages._asdict().items()}
    proposals, counts = selector.propose(arrays)
    for own, count, graph in zip(proposals, counts, arrays["proposals"], strict=True):
        assert 0 < count <= len(graph)
        np.testing.assert_allclose(own[:count], graph[:count], atol=1e-4)
    found = selector.detect(arrays, proposals, counts)
    for name, value in wanted._asdict().items():
        np.testing.assert_allclose(found[name], value.numpy(), atol=1e-3, rtol=1e-4, err_msg=name)


@pytest.fixture(scope="module")
def split(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint as two graphs."""
    path = tmp_path_factory.mktemp("split") / "bundle"
    export_checkpoint(folder / "model.pt", path, split=True)
    return path


def test_export_checkpoint__two_graphs(split: Path, bundle: Path) -> None:
    opened = open_bundle(split)
    assert set(opened.manifest.files) == {MODEL_NAME, SECOND_NAME}
    assert opened.manifest.second_stage == opened.manifest.files[SECOND_NAME]
    assert open_bundle(opened.model_path).manifest.second_stage == opened.manifest.second_stage
    first, second = onnx.load(split / MODEL_NAME), onnx.load(split / SECOND_NAME)
    operators = {node.op_type for graph in (first, second) for node in graph.graph.node}
    assert not operators & {"TopK", "GatherElements", "Trilu", "Greater", "Softmax"}
    whole, halves = (sum(p.stat().st_size for p in folder.glob("*.onnx")) for folder in (bundle, split))
    assert halves < whole  # no weight is in both


def test_bundle__answers_as_the_one_graph(split: Path, bundle: Path) -> None:
    images = [np.random.default_rng(i).integers(0, 256, (50, 70, 3), dtype=np.uint8) for i in range(2)]
    one, two = BundlePredictor(bundle, "cpu", 1), BundlePredictor(split, "cpu", 1)
    assert two.runner.reason == "asked for, in two stages"
    for image in images:
        wanted, found = one.detect(image), two.detect(image)
        assert len(wanted) > 0 and found.labels.tolist() == wanted.labels.tolist()
        for name in ("boxes", "scores", "sigma", "entropy"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=1e-3)


def test_verify_bundle__of_two_stages(split: Path, checkpoint: Path) -> None:
    checks, _ = verify_bundle(split, checkpoint, backends=["cpu"])
    assert all(check.passed for check in checks), [str(check) for check in checks if not check.passed]
    details = {check.name: check.detail for check in checks}
    assert details["graph"].endswith("in two stages") and details["calibration"] == "none"
    assert sum(check.compared or 0 for check in checks) > 0


def test_bundle__a_calibration_is_the_manifests(split: Path, tmp_path: Path) -> None:
    origin = CalibrationOrigin("labels", boxes=30, images=12, data="aa", model="bb")
    given = SideCalibration((0.1, -0.2, 0.0, 0.05), (2.0, 1.0, 0.5, 3.0), {}, origin)
    image = np.random.default_rng(0).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    plain = BundlePredictor(split, "cpu", 1).detect(image)
    written = write_calibrated(open_bundle(split), given, tmp_path / "b")
    assert written.model_hash != open_bundle(split).model_hash
    assert open_bundle(written.path).manifest.calibration == given
    found = BundlePredictor(written.path, "cpu", 1).detect(image)
    np.testing.assert_allclose(found.sigma, plain.sigma * given.scale, rtol=1e-5)
    assert not np.array_equal(found.boxes, plain.boxes)


def test_bundle__a_second_stage_that_is_another(split: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(split, copy)
    (copy / SECOND_NAME).write_bytes(b"changed")
    for path in (copy, copy / MODEL_NAME):
        with pytest.raises(ArtifactError, match=r"second_stage\.onnx does not match the manifest"):
            open_bundle(path)


def test_bundle__the_second_stage_alone(split: Path) -> None:
    with pytest.raises(
        ArtifactError, match=rf"is the second stage of a model in two graphs\. Give its bundle: {split}"
    ):
        open_bundle(split / SECOND_NAME)
    assert describe(split / SECOND_NAME)["kind"] == "second stage of the bundle that it lies in"
    assert describe(split)["second_stage"] == open_bundle(split).manifest.second_stage


def test_cut_stages__a_graph_without_names_for_it() -> None:
    with pytest.raises(ArtifactError, match="no tensor features to cut it at: an earlier version"):
        cut_stages(small_graph(1.0))


def test_check_stages__of_another_size_or_swapped(split: Path) -> None:
    manifest = open_bundle(split).manifest
    first, second = (split / MODEL_NAME).read_bytes(), (split / SECOND_NAME).read_bytes()
    report = check_stages(first, second, manifest)
    assert report.nodes > 100 and report.size == len(first) + len(second)
    with pytest.raises(ArtifactError, match="inputs and outputs"):
        check_stages(second, first, manifest)
    for wrong in ({"batch": 2}, {"input_size": (96, 160)}):
        with pytest.raises(ArtifactError, match="do not fit"):
            check_stages(first, second, replace(manifest, **wrong))  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match="said to be fp16"):
        check_stages(first, second, replace(manifest, precision="fp16"))
