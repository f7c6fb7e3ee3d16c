from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tiny_model import tiny_bundle, tiny_manifest, tiny_onnx

from ptedge.artifacts.bundle import is_bundle, open_bundle, write_bundle
from ptedge.artifacts.lineage import Lineage
from ptedge.artifacts.manifest import SCHEMA
from ptedge.errors import ArtifactError, OutputError


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_write_bundle__opens_as_written(tmp_path: Path) -> None:
    manifest = tiny_manifest(
        lineage=Lineage("source_free", "teacher", "aa", ("bb", "cc")),
        tools={"onnx": "1.0"},
        sigma_scale=(1.5, 1.0, 0.5, 2.0),
    )
    written = write_bundle(tmp_path / "b", manifest, tiny_onnx())
    opened = open_bundle(tmp_path / "b")
    assert opened == written
    assert dataclasses.replace(opened.manifest, files={}) == manifest
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["manifest.json", "model.onnx"]
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_write_bundle__model_is_still_valid_onnx(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    onnx.checker.check_model(onnx.load(bundle.model_path))


def test_write_bundle__replaces_a_bundle_and_its_old_engine(tmp_path: Path) -> None:
    old = tiny_bundle(tmp_path / "b")
    (tmp_path / "b" / "model.gpu.engine").write_bytes(b"old")
    new = tiny_bundle(tmp_path / "b", backbone="other")
    assert open_bundle(tmp_path / "b").manifest.backbone == "other"
    assert new.model_hash != old.model_hash
    assert not (tmp_path / "b" / "model.gpu.engine").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_write_bundle__keeps_the_old_one_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tiny_bundle(tmp_path / "b")

    def fail(path: Path, value: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptedge.artifacts.bundle.write_json", fail)
    with pytest.raises(OutputError, match="disk is full"):
        tiny_bundle(tmp_path / "b", backbone="other")
    assert open_bundle(tmp_path / "b") == old
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_write_bundle__never_replaces_something_else(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "photos"
    content = place
    if kind == "folder":
        place.mkdir()
        content = place / "one.jpg"
    content.write_text("mine")
    with pytest.raises(OutputError, match="something else is there"):
        tiny_bundle(place)
    assert content.read_text() == "mine"


def test_write_bundle__takes_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    tiny_bundle(tmp_path / "b")
    assert is_bundle(tmp_path / "b")


def test_write_bundle__removes_what_a_killed_process_left(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    kept = [f".b.{os.getppid()}.tmp", ".b.x.tmp", f".other.{ended.pid}.tmp"]  # alive, not ours, of another bundle
    for name in [f".b.{ended.pid}.tmp", *kept]:
        (tmp_path / name).mkdir()
    tiny_bundle(tmp_path / "b")
    assert {path.name for path in tmp_path.iterdir()} == {"b", *kept}


def test_open_bundle__bare_onnx_carries_the_manifest(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", class_names=("Fußgänger", "车"))
    bare = tmp_path / "moved.onnx"
    bundle.model_path.rename(bare)
    opened = open_bundle(bare)
    assert opened.manifest == dataclasses.replace(bundle.manifest, files={})
    assert opened.model_hash == bundle.model_hash


def test_open_bundle__every_truncation_is_named(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    whole = bundle.model_path.read_bytes()
    for keep in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        bundle.model_path.write_bytes(whole[:keep])
        with pytest.raises(ArtifactError, match=r"model\.onnx does not match the manifest.*ptedge export"):
            open_bundle(bundle.path)
        with pytest.raises(ArtifactError, match=r"model\.onnx.*ptedge export"):
            open_bundle(bundle.model_path)


def test_open_bundle__missing_model(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    bundle.model_path.unlink()
    with pytest.raises(ArtifactError, match=r"cannot read .*model\.onnx: No such file.*ptedge export"):
        open_bundle(bundle.path)


def test_open_bundle__foreign_onnx(tmp_path: Path) -> None:
    (tmp_path / "other.onnx").write_bytes(tiny_onnx())
    with pytest.raises(ArtifactError, match="was not written by ptedge"):
        open_bundle(tmp_path / "other.onnx")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": SCHEMA + 1}, f"reads up to {SCHEMA}. Update ptedge"),
        ({"schema": None}, "not a ptedge manifest"),
        ({"colour": "RGB"}, "unknown key 'colour'; did you mean 'color'"),
        ({"input_size": [64, 90]}, "multiple of 16"),
        ({"class_names": []}, "at least one"),
        ({"class_names": ["car", "car"]}, "distinct"),
        ({"color": "BGR"}, "must be one of RGB"),
        ({"sigma_scale": [1, 1, 0, 1]}, "sigma_scale is 0"),
        ({"sigma_scale": [1, 1, float("inf"), 1]}, "finite number"),
        ({"side_offset": [0, 0, 0.5, 0]}, "side_offset is 0.5"),
        ({"side_offset": [0, 0, float("nan"), 0]}, "side_offset is nan"),
        ({"intervals": {"most": [1, 1, 1, 1]}}, "no coverage, for example 0.9"),
        ({"intervals": {"1.0": [1, 1, 1, 1]}}, "below 1"),
        ({"intervals": {"0.9": [1, 1, -1, 1]}}, "intervals of 0.9 is -1"),
        ({"calibrated": {"how": "guessed"}}, "labels, label_free"),
        ({"sigma_scale": [1.0, 2.0, 1.0, 1.0]}, "model.onnx was exported with [1.0, 1.0, 1.0, 1.0]"),
        ({"side_offset": [0.1, 0, 0, 0]}, "model.onnx was exported with [0.0, 0.0, 0.0, 0.0]"),
        ({"lineage": {"role": "boss"}}, "teacher, student"),
        ({"files": {}}, "does not list model.onnx"),
        ({"files": {"model.onnx": 3}}, "must map names to text"),
        ({"files": {"../x": "00", "model.onnx": "00"}}, "not a file name"),
    ],
)
def test_open_bundle__refuses_manifest(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    tiny_bundle(tmp_path / "b")
    edit_manifest(tmp_path / "b", **changes)
    with pytest.raises(ArtifactError) as caught:
        open_bundle(tmp_path / "b")
    assert words in str(caught.value)
    assert "manifest.json" in str(caught.value) and "ptedge export" in str(caught.value)


def test_open_bundle__manifest_lacks_a_key(tmp_path: Path) -> None:
    tiny_bundle(tmp_path / "b")
    path = tmp_path / "b" / "manifest.json"
    values = json.loads(path.read_text())
    del values["class_names"]
    path.write_text(json.dumps(values))
    with pytest.raises(ArtifactError, match="missing class_names"):
        open_bundle(tmp_path / "b")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_open_bundle__manifest_is_no_manifest(tmp_path: Path, text: str) -> None:
    tiny_bundle(tmp_path / "b")
    (tmp_path / "b" / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        open_bundle(tmp_path / "b")


def test_is_bundle__tells_kinds_apart(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    (tmp_path / "model.pt").write_bytes(b"x")
    assert is_bundle(bundle.path) and is_bundle(bundle.model_path)
    assert not is_bundle(tmp_path) and not is_bundle(tmp_path / "model.pt") and not is_bundle(tmp_path / "no.onnx")


def test_open_bundle__manifest_that_says_other_classes_than_the_model(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "bundle", schema=1)
    path = bundle.path / "manifest.json"
    values = json.loads(path.read_text())
    values["sigma_scale"] = [1.0, 2.0, 1.0, 2.0]  # in schema 1 a calibration may be written in after the export
    path.write_text(json.dumps(values))
    assert open_bundle(bundle.path).manifest.sigma_scale == (1.0, 2.0, 1.0, 2.0)
    values["class_names"] = [f"other {name}" for name in values["class_names"]]
    path.write_text(json.dumps(values))
    with pytest.raises(ArtifactError, match=r"manifest\.json says class_names = .*but model\.onnx was exported with"):
        open_bundle(bundle.path)


def test_write_bundle__puts_the_old_one_back_when_the_new_cannot_take_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tiny_bundle(tmp_path / "b")
    (tmp_path / "b" / "model.gpu.engine").write_bytes(b"old")
    monkeypatch.setattr("ptedge.artifacts.bundle.exchange", lambda one, other: False)  # as where the system cannot
    real, calls = os.replace, list[tuple[str, str]]()

    def second_fails(source: Any, target: Any) -> None:
        if Path(target).name in ("b", f".b.{os.getpid()}.old"):  # files of the bundle are renamed as well
            calls.append((Path(source).name, Path(target).name))
            if len(calls) == 2:
                raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", second_fails)
    with pytest.raises(OutputError, match="Input/output error"):
        tiny_bundle(tmp_path / "b", backbone="other")
    monkeypatch.undo()
    assert [target for _, target in calls] == [f".b.{os.getpid()}.old", "b", "b"]
    assert open_bundle(tmp_path / "b") == old
    assert (tmp_path / "b" / "model.gpu.engine").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_read_model__changed_since_it_was_opened(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    assert hashlib.sha256(bundle.read_model()).hexdigest() == bundle.model_hash
    bundle.model_path.write_bytes(tiny_onnx() + b"\x08\x08")
    with pytest.raises(ArtifactError, match="changed while it was being opened"):
        bundle.read_model()


def test_open_bundle__weights_in_another_file(tmp_path: Path) -> None:
    model = onnx.load_from_string(tiny_onnx())
    tensor = onnx.numpy_helper.from_array(np.zeros(2, np.float32), "w")
    tensor.external_data.add(key="location", value="/etc/passwd")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    model.graph.initializer.append(tensor)
    bundle = tiny_bundle(tmp_path / "b", model.SerializeToString())
    for path in (bundle.path, bundle.model_path):
        with pytest.raises(ArtifactError, match="keeps weights in other files"):
            open_bundle(path)


def test_open_bundle__a_device_in_place_of_a_file(tmp_path: Path) -> None:
    for name in ("manifest.json", "model.onnx"):
        bundle = tiny_bundle(tmp_path / name)
        (bundle.path / name).unlink()
        (bundle.path / name).symlink_to("/dev/zero")
        with pytest.raises(ArtifactError, match="it is a device, not a file"):
            open_bundle(bundle.path)
