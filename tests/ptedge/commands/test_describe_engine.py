from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from made_artifacts import bundle_in

from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.commands.inspect import describe
from ptedge.machine.driver import Driver, Gpu


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
