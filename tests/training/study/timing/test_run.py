"""What the detectors of a study cost: exported and timed for real, with the tiny detector inside this process."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from study_inside import main, run_inside
from training_shell import LOOP, MODEL

from ptedge.training.study.process import Processes


@pytest.fixture
def study(tmp_path: Path, source_data: Path, target_frames: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A row that trains, one that adapts, a detector that does not train, and a graph of others."""
    monkeypatch.setattr(Processes, "run", run_inside)
    given, gives = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3, 4, 4]) for name in ("x", "y")
    )
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", [given], [gives])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "relu.onnx")
    (tmp_path / "train.toml").write_text("log_every = 1\n", "utf-8")
    path = tmp_path / "study.toml"
    path.write_text(
        f"""
set = {json.dumps([*LOOP, "optim.steps=1"])}
start = "source"
baseline = "source"
[data]
root = "/"
source = "{source_data}"
frames = "{target_frames}"
val = "{source_data}"
[config]
train = "train.toml"
[timing]
rounds = 1
[[timing.untrained]]
name = "light"
set = {json.dumps([*MODEL, "model.roi_channels=2", "model.rpn_test_top_n=[30, 10]"])}
classes = 3
[[timing.graph]]
name = "others"
file = "relu.onnx"
[[row]]
name = "source"
kind = "train"
set = {json.dumps(MODEL)}
[[row]]
name = "adapted"
kind = "source_free"
""",
        "utf-8",
    )
    return path


def test_study__times_what_it_trained_and_what_stands_beside(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, said, err = main(["study", study, "--out", out])
    assert status == 0, err
    page = (out / "speed.md").read_text("utf-8")
    assert said.rstrip().endswith(page.rstrip())
    assert "| light | 64x96 | 10 |" in page and "not trained" in page
    graphs = {one["name"]: one for one in json.loads((out / "speed.json").read_text("utf-8"))["graphs"]}
    assert {name: one["kind"] for name, one in graphs.items()} == {
        "source": "row",
        "light": "untrained",
        "others": "other",
    }
    assert graphs["source"]["proposals"] == 20 and graphs["source"]["ms"] > 0
    assert 0 < graphs["light"]["gmacs"] < graphs["source"]["gmacs"] and graphs["others"]["gmacs"] == 0
    assert graphs["source"]["megabytes"] == (out / "speed" / "source" / "model.onnx").stat().st_size / 1e6
    assert (out / "plots" / "speed.png").stat().st_size > 0
    # given again, what was exported is timed again and not made again
    made = (out / "speed" / "source" / "model.onnx").stat().st_mtime_ns
    assert main(["study", study, "--out", out])[0] == 0
    assert (out / "speed" / "source" / "model.onnx").stat().st_mtime_ns == made


def test_study__a_graph_that_is_none_is_one_sentence(study: Path, tmp_path: Path) -> None:
    (tmp_path / "relu.onnx").write_bytes(b"no graph")
    status, _, err = main(["study", study, "--out", tmp_path / "out"])
    assert status == 1 and "speed could not be measured" in err and "relu.onnx" in err
    assert (tmp_path / "out" / "table.md").exists()
