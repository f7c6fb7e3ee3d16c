from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from ptedge.artifacts.bundle import Manifest, add_metadata, write_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.artifacts.lineage import Lineage
from ptedge.cli import cli
from ptedge.commands.inspect import describe, format_text
from ptedge.errors import ArtifactError, InputError
from ptedge.machine.driver import Driver, Gpu


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, arguments)], catch_exceptions=False)


def write_checkpoint(path: Path, kind: str = "adapted") -> Path:
    """As ptedge.artifacts.checkpoint writes it, with two anchors for weights."""
    header = {
        "config": {"backbone": "efficientnet_lite0", "input_size": [224, 400]},
        "class_names": ["car", "person"],
        "lineage": {"kind": kind, "role": "teacher", "parents": ["ab" * 32], "step": 5},
    }
    state = {"anchors.log_wh": torch.tensor([[16.0, 32.0], [64.0, 8.0]]).log(), "head.weight": torch.zeros(3)}
    torch.save({"format": "ptedge-checkpoint", "version": 1, "header": json.dumps(header), "state": state}, path)
    return path


def bundle_in(folder: Path) -> Path:
    manifest = Manifest(
        class_names=("car",),
        input_size=(64, 96),
        anchors=((16.0, 32.0),),
        backbone="vgg16",
        lineage=Lineage("source_free", "teacher", "cd" * 32),
    )
    write_bundle(folder, manifest, b"")
    return folder


def test_describe__checkpoint(tmp_path: Path) -> None:
    got = describe(write_checkpoint(tmp_path / "model.pt"))
    assert got["kind"] == "checkpoint"
    assert got["class_names"] == ["car", "person"]
    assert got["input_size"] == [224, 400]
    assert got["backbone"] == "efficientnet_lite0"
    assert got["anchors"] == [[16.0, 32.0], [64.0, 8.0]]
    assert got["lineage"]["parents"] == ["ab" * 32]
    assert got["weights"] == 7
    assert len(got["sha256"]) == 64


def test_describe__checkpoint_as_the_library_writes_it(tmp_path: Path) -> None:
    from ptedge.artifacts.checkpoint import Checkpoint, save_checkpoint
    from ptedge.detector.config import ModelConfig

    config = ModelConfig(weights="none", input_size=(64, 96))
    state = {"anchors.log_wh": torch.full((1, 2), math.log(48.0))}
    save_checkpoint(tmp_path / "m.pt", Checkpoint(config, ("car",), state, Lineage(role="teacher")))
    got = describe(tmp_path / "m.pt")
    assert (got["kind"], got["class_names"], got["input_size"]) == ("checkpoint", ["car"], [64, 96])
    assert got["anchors"] == [[48.0, 48.0]]
    assert got["lineage"]["role"] == "teacher"


def test_describe__foreign_torch_file(tmp_path: Path) -> None:
    torch.save({"model": {"w": torch.zeros(2)}, "epoch": 3}, tmp_path / "other.pt")
    got = describe(tmp_path / "other.pt")
    assert got["kind"] == "torch file, not written by ptedge"
    assert got["entries"] == ["model", "epoch"]
    assert got["tensors"] == 1


def test_describe__bundle_and_its_files(tmp_path: Path) -> None:
    folder = bundle_in(tmp_path / "bundle")
    (folder / "model.orin-10.3-fp16.engine").write_bytes(b"plan")
    got = describe(folder)
    assert (got["kind"], got["class_names"], got["input_size"]) == ("bundle", ["car"], [64, 96])
    assert got["lineage"]["kind"] == "source_free"
    assert "not in the manifest" in got["engines_here"]["model.orin-10.3-fp16.engine"]
    model = describe(folder / "model.onnx")
    assert (model["kind"], model["class_names"]) == ("ONNX file of a bundle", ["car"])
    assert model["sha256"] == got["files"]["model.onnx"]


def test_describe__engine_with_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bundle_in(tmp_path / "bundle")
    path = folder / "model.orin-10.3.0-fp16.engine"
    path.write_bytes(b"ftrt" + bytes(20) + bytes([10, 3, 0, 26]) + bytes(100))
    model_hash = describe(folder / "model.onnx")["sha256"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    record = EngineRecord(path.name, digest, model_hash, "fp16", "10.3.0", "12.6", "Orin", "8.7", ("tf32",))
    add_record(folder / "manifest.json", record)
    got = describe(path)
    assert (got["kind"], got["gpu"], got["compute_capability"], got["flags"]) == (
        "TensorRT engine",
        "Orin",
        "8.7",
        ["tf32"],
    )
    assert got["tensorrt_in_header"] == "10.3.0.26"
    assert got["bundle"]["lineage"]["checkpoint"] == "cd" * 32
    assert "for TensorRT 10.3.0 on Orin); see ptedge doctor" in got["here"]
    assert f"ptedge build {folder}" in got["here"]
    monkeypatch.setattr("ptedge.commands.engine_fit.ask_driver", lambda: Driver((12, 6), (Gpu("Orin", "8.7"),)))
    monkeypatch.setattr("ptedge.commands.engine_fit.tensorrt_version", lambda: "10.3.0")
    assert describe(path)["here"] == "runs on this machine"
    assert describe(folder)["engines_here"] == {path.name: "runs on this machine"}
    path.write_bytes(b"another")
    got = describe(path)
    assert "not the one that was built" in got["here"]
    assert "tensorrt_in_header" not in got
    path.unlink()
    assert "the file is missing" in describe(folder)["engines_here"][path.name]


def test_describe__engine_alone(tmp_path: Path) -> None:
    (tmp_path / "some.plan").write_bytes(b"ftrt")
    got = describe(tmp_path / "some.plan")
    assert "lies in no bundle" in got["here"]
    assert "tensorrt_in_header" not in got


def test_describe__changed_bundle_is_reported(tmp_path: Path) -> None:
    folder = bundle_in(tmp_path / "bundle")
    with open(folder / "model.onnx", "ab") as file:
        file.write(b"x")
    with pytest.raises(ArtifactError, match="does not match the manifest"):
        describe(folder)


def test_describe__foreign_and_damaged_onnx(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(add_metadata(b"", "author", "somebody"))
    got = describe(tmp_path / "a.onnx")
    assert (got["kind"], got["metadata"]) == ("ONNX file, not written by ptedge", {"author": "somebody"})
    (tmp_path / "b.onnx").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ArtifactError, match="not a whole ONNX file"):
        describe(tmp_path / "b.onnx")


def test_describe__run_folder(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model.pt")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "loss": 0.5}\n{"st')  # cut by a power loss
    (tmp_path / "summary.json").write_text('{"steps": 2}')
    got = describe(tmp_path)
    assert got["kind"] == "run folder"
    assert (got["logged_steps"], got["last_logged"]) == (2, {"step": 2, "loss": 0.5})
    assert got["summary"] == {"steps": 2}
    assert got["model"]["kind"] == "checkpoint"


def test_describe__field_folder(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(b"12345")
    (tmp_path / "field.json").write_text('{"schema": 1, "policy": {"random": 0.1}}')
    lines: list[dict[str, Any]] = [
        {"file": "images/a.jpg", "time": 1.0, "model": "ab", "camera": "0", "why": ["random"]},
        {"file": "images/b.jpg", "time": 9.0, "model": "ab", "camera": "0", "why": ["random", "entropy"]},
    ]
    (tmp_path / "frames.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    got = describe(tmp_path)
    assert (got["kind"], got["frames"], got["images"], got["image_bytes"]) == ("field folder", 2, 1, 5)
    assert (got["first_time"], got["last_time"]) == (1.0, 9.0)
    assert got["models"] == {"ab": 2}
    assert got["kept_for"] == {"random": 2, "entropy": 1}
    assert got["cameras"] == {"0": 2}
    assert got["field"]["policy"] == {"random": 0.1}


@pytest.mark.parametrize("name", ["notes.txt", "folder", "absent.pt"])
def test_describe__unknown_things(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=name):
        describe(tmp_path / name)


def test_describe__truncated_and_empty_checkpoint(tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path / "model.pt").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[:400])
    with pytest.raises(ArtifactError, match="truncated"):
        describe(tmp_path / "cut.pt")
    (tmp_path / "empty.pt").touch()
    with pytest.raises(ArtifactError, match="is empty"):
        describe(tmp_path / "empty.pt")


def test_inspect__json_and_text(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "model.pt")
    assert json.loads(invoke(path, "--json").stdout) == describe(path)
    text = invoke(path).stdout
    assert "224 x 400 (height x width)" in text
    assert "16x32, 64x8" in text
    assert "car, person" in text
    assert "ptedge inspect runs/" in invoke("--help").output


def test_inspect__loads_no_torch(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "model.pt")
    code = f"""
import sys
from pathlib import Path
from ptedge.commands.inspect import describe
assert describe(Path({str(path)!r}))["anchors"]
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_format_text__nested_and_empty() -> None:
    text = format_text({"kind": "x", "bytes": 2_500_000, "table": {"a": 1, "long": []}, "nothing": {}})
    assert text.splitlines() == [
        "kind     x",
        "bytes    2500000 (2.5 MB)",
        "table",
        "  a     1",
        "  long  none",
        "nothing  none",
    ]
