from __future__ import annotations

from pathlib import Path

import pytest
from made_artifacts import bundle_in

from ptedge.artifacts.onnx_metadata import add_metadata
from ptedge.commands.inspect import describe
from ptedge.errors import ArtifactError


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
