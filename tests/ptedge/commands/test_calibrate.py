"""``ptedge calibrate`` from end to end: a bundle and a checkpoint, there and back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from keys import key_pair
from tiny_detector import tiny_config, use_tiny_detector
from tiny_model import ANSWER, CLASS_NAMES, HEIGHT, WIDTH, tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ptedge.artifacts.trust import Trust
from ptedge.backends.checkpoint_predictor import CheckpointPredictor
from ptedge.cli import cli
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import InputError, OutputError, PtedgeError
from ptedge.files import sha256_file

OFFSET = np.array([0.05, -0.1, 0.0, 0.1])

Boxes = Callable[[np.ndarray], tuple[np.ndarray, list[int]]]  # picture -> boxes [N, 4] and their labels


def write_labelled(folder: Path, boxes: Boxes, count: int = 6) -> Path:
    """Noisy pictures, on each of which a detector's boxes are off by ``OFFSET``; COCO."""
    folder.mkdir()
    images, annotations = [], []
    for i in range(count):
        picture = np.random.default_rng(i).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        cv2.imwrite(str(folder / f"{i}.png"), picture[..., ::-1])
        images.append({"id": i, "file_name": f"{i}.png", "width": WIDTH, "height": HEIGHT})
        found, labels = boxes(picture)
        size = np.tile(found[:, 2:] - found[:, :2], 2)
        for (x1, y1, x2, y2), label in zip((found - OFFSET * size).tolist(), labels, strict=True):
            box = {"bbox": [x1, y1, x2 - x1, y2 - y1], "area": 1.0, "iscrowd": 0}
            annotations.append({"id": len(annotations), "image_id": i, "category_id": label + 1, **box})
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(CLASS_NAMES)]
    path = folder / "few.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "bundle", tiny_onnx()).path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_labelled(tmp_path / "data", lambda _: (np.array(ANSWER["boxes"], np.float64), ANSWER["labels"]))


def invoke(*words: Any) -> Result:
    return CliRunner().invoke(cli, ["calibrate", *map(str, words)], catch_exceptions=False)


def test_calibrate__a_bundle_is_corrected_where_it_is(bundle: Path, data: Path) -> None:
    before = open_bundle(bundle)
    result = invoke(bundle, data, "--coverage", "0.9", "--coverage", "0.95", "--json")
    assert result.exit_code == 0
    document, opened = json.loads(result.stdout), open_bundle(bundle)
    assert opened.manifest.side_offset == pytest.approx(OFFSET, abs=1e-5)
    assert [document["sides"][side]["offset"] for side in ("x1", "y1", "x2", "y2")] == list(opened.manifest.side_offset)
    assert document["after"]["AP"] == 1.0 > document["before"]["AP"]
    assert (document["images"], document["labelled_boxes"], document["found_boxes"]) == (6, 12, 12)
    assert list(opened.manifest.intervals) == ["0.9"] and document["intervals_too_few"] == {"0.95": 19}
    origin = opened.manifest.calibrated
    assert origin is not None
    assert (origin.model, origin.data) == (before.model_hash, document["data_hash"])
    assert document["written"] == str(bundle)


def test_calibrate__again_starts_from_the_model_as_it_was_exported(bundle: Path, data: Path) -> None:
    assert invoke(bundle, data).exit_code == 0
    once = open_bundle(bundle)
    assert invoke(bundle, data).exit_code == 0
    twice = open_bundle(bundle).manifest
    assert (twice.side_offset, twice.sigma_scale) == (once.manifest.side_offset, once.manifest.sigma_scale)


def test_calibrate__undo_gives_the_bundle_back(bundle: Path, data: Path) -> None:
    before = {path.name: path.read_bytes() for path in bundle.iterdir()}
    invoke(bundle, data)
    result = invoke(bundle, "--undo")
    assert result.exit_code == 0 and "wrote" in result.stderr
    assert {path.name: path.read_bytes() for path in bundle.iterdir()} == before
    result = invoke(bundle, "--undo", "--json")
    assert json.loads(result.stdout) == {"model": str(bundle), "had_calibration": False, "written": None}
    assert "nothing to undo" in result.stderr


def test_calibrate__table_shows_sides_and_what_it_does_to_images_left_out(bundle: Path, data: Path) -> None:
    result = invoke(bundle, data, "--dry-run", "--coverage", "0.9", "--coverage", "0.95")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["offset", "applied", "+0.050", "-0.100", "+0.000", "+0.100"] in [line[:6] for line in lines]
    calibrated = next(line for line in lines if line[:1] == ["calibrated"])
    assert calibrated[1:4] == ["1.000", "1.000", "1.000"]
    assert "interval 0.95: none, it takes 19 boxes that are found, and there are 12" in result.stdout
    assert open_bundle(bundle).manifest.calibration is None  # nothing was written


def test_calibrate__says_what_belongs_to_the_graph_before(bundle: Path, data: Path, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path, "own")
    assert invoke(bundle, data, "--sign", private).exit_code == 0
    (bundle / "m.engine").write_bytes(b"engine")
    result = invoke(bundle, "--undo")
    assert "1 engines of the graph before are gone. Build again: ptedge build" in result.stderr
    assert "signature was of the graph before and is gone" in result.stderr
    invoke(bundle, data, "--sign", private)
    assert open_bundle(bundle, Trust.read([public])).manifest.calibration is not None


def test_calibrate__out_leaves_the_model_alone(bundle: Path, data: Path, tmp_path: Path) -> None:
    before = open_bundle(bundle)
    assert invoke(bundle, data, "--out", tmp_path / "other").exit_code == 0
    assert open_bundle(bundle) == before
    assert open_bundle(tmp_path / "other").manifest.calibration is not None


def test_calibrate__a_device_needs_neither_torch_nor_onnx(bundle: Path, data: Path) -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "torchvision", "timm", "onnx"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from ptedge.cli import main
sys.argv = ["ptedge", "calibrate", *sys.argv[1:]]
main()
"""
    subprocess.run([sys.executable, "-c", code, str(bundle), str(data)], check=True, capture_output=True, timeout=240)
    assert open_bundle(bundle).manifest.side_offset == pytest.approx(OFFSET, abs=1e-5)


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(3)
    config = tiny_config(score_threshold=0.3, nms=0.1)
    model = ProbabilisticFasterRCNN(config, len(CLASS_NAMES))
    with torch.no_grad():
        model.rpn_head.objectness.weight.mul_(30)
        model.roi_head.logits.weight.mul_(5)
    path = tmp_path / "model.pt"
    save_checkpoint(path, Checkpoint(config, CLASS_NAMES, model.state_dict()))
    return path


def own_boxes(checkpoint: Path) -> Boxes:
    """What the checkpoint finds, as far as it lies in the middle, so that moved boxes stay in the picture."""
    predictor = CheckpointPredictor(checkpoint, 1)

    def boxes(picture: np.ndarray) -> tuple[np.ndarray, list[int]]:
        found = predictor.detect(picture)
        size = found.boxes[:, 2:] - found.boxes[:, :2]
        margin = 0.12 * np.tile(size, 2)
        low, high = found.boxes - margin, found.boxes + margin
        inside = (low[:, :2] > 0).all(axis=1) & (high[:, 2:] < [WIDTH, HEIGHT]).all(axis=1)
        return found.boxes[inside].astype(np.float64), found.labels[inside].tolist()

    return boxes


def test_calibrate__a_checkpoint_keeps_the_one_before(checkpoint: Path, tmp_path: Path) -> None:
    data, before = write_labelled(tmp_path / "data", own_boxes(checkpoint)), sha256_file(checkpoint)
    result = invoke(checkpoint, data)
    assert result.exit_code == 0
    written = load_checkpoint(checkpoint).calibration
    assert written is not None and written.origin.model == before
    assert written.offset == pytest.approx(OFFSET, abs=0.02)
    assert sha256_file(tmp_path / "model.pt.earlier-1") == before
    assert "what was there before is" in result.stderr and "ptedge export" in result.stderr
    assert invoke(checkpoint, "--undo").exit_code == 0
    assert load_checkpoint(checkpoint).calibration is None
    assert load_checkpoint(tmp_path / "model.pt.earlier-2").calibration == written


def test_calibrate__a_checkpoint_to_another_file(checkpoint: Path, tmp_path: Path) -> None:
    data, before = write_labelled(tmp_path / "data", own_boxes(checkpoint)), sha256_file(checkpoint)
    assert invoke(checkpoint, data, "--out", tmp_path / "new" / "model.pt").exit_code == 0
    assert sha256_file(checkpoint) == before
    assert load_checkpoint(tmp_path / "new" / "model.pt").calibration is not None
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model.pt"]


def test_calibrate__a_checkpoint_that_cannot_be_written_is_as_it_was(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, before = write_labelled(tmp_path / "data", own_boxes(checkpoint)), sha256_file(checkpoint)

    def fail(path: Path, value: Any) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr("ptedge.artifacts.checkpoint.save_checkpoint", fail)
    with pytest.raises(OutputError):
        invoke(checkpoint, data)
    assert sha256_file(checkpoint) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "model.pt"]


@pytest.mark.parametrize("words", [["model"], ["model", "data", "--undo"], ["model", "--undo", "--coverage", "0.9"]])
def test_calibrate__wrong_usage(words: list[str]) -> None:
    result = invoke(*words)
    assert result.exit_code == 2 and "DATA to calibrate on, or --undo" in result.stderr


def test_calibrate__models_that_cannot_be_calibrated(bundle: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "m.engine").touch()
    (tmp_path / "model.pt").touch()
    cases: list[tuple[Any, str]] = [
        ([tmp_path / "none.pt", data], "does not exist"),
        ([tmp_path, data], "neither a checkpoint nor a bundle"),
        ([tmp_path / "m.engine", data], "neither a checkpoint nor a bundle"),
        ([bundle / "model.onnx", data], "Give the folder"),
        ([tiny_bundle(tmp_path / "old", schema=1).path, data], "before graphs had a place"),
        ([tmp_path / "model.pt", data, "--sign", key_pair(tmp_path, "k")[0]], "carries no signature"),
    ]
    for words, text in cases:
        with pytest.raises(PtedgeError, match=text):
            invoke(*words)


def test_calibrate__nothing_found(bundle: Path, tmp_path: Path) -> None:
    data = write_labelled(tmp_path / "data", lambda _: (np.array([[60.0, 40.0, 90.0, 60.0]]), [0]))
    with pytest.raises(InputError, match="found 0 of the 6 labelled boxes"):
        invoke(bundle, data)
    assert open_bundle(bundle).manifest.calibration is None
