"""Engine records: names, reading, and what makes an engine fit a machine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ptedge.artifacts.engine_file import (
    EngineRecord,
    Platform,
    add_record,
    choose_engine,
    differences,
    engine_name,
    other_stage,
    read_engine,
    record_to_json,
    records_from_json,
    records_to_json,
    same_build,
)
from ptedge.errors import ArtifactError

HERE = Platform("10.3.0", "12.6", "Orin", "8.7")
RECORD = EngineRecord(
    file="model.orin-10.3.0-fp16.engine",
    sha256=hashlib.sha256(b"plan").hexdigest(),
    onnx_sha256="aa",
    precision="fp16",
    tensorrt="10.3.0",
    cuda="12.6",
    gpu="Orin",
    compute_capability="8.7",
    built="2026-01-02T03:04:05+00:00",
)


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "model.nvidia_h100_80gb_hbm3-8.5.3.1-int8.engine"),
        ("Orin", "model.orin-8.5.3.1-int8.engine"),
        ("../etc", "model.etc-8.5.3.1-int8.engine"),
        ("", "model.gpu-8.5.3.1-int8.engine"),
    ],
)
def test_engine_name__from_any_device_name(gpu: str, name: str) -> None:
    assert engine_name(gpu, "8.5.3.1", "int8") == name


def test_records__there_and_back() -> None:
    assert records_from_json(json.loads(json.dumps(records_to_json([RECORD]))), "m") == (RECORD,)


@pytest.mark.parametrize(
    "values", [{}, [1], [{"file": "a.engine"}], [{**records_to_json([RECORD])[0], "file": "../x.engine"}]]
)
def test_records__broken(values: object) -> None:
    with pytest.raises(ArtifactError, match="ptedge build"):
        records_from_json(values, "m")


def test_differences__each_is_named() -> None:
    assert differences(RECORD, HERE, "aa") == []
    assert differences(RECORD, HERE, "bb") == ["it was built from another model.onnx"]
    assert differences(RECORD, replace(HERE, tensorrt="8.6.2"), "aa") == [
        "it was built with TensorRT 10.3.0, here is 8.6.2"
    ]
    other = replace(HERE, gpu="NVIDIA L4", compute_capability="8.9")
    assert differences(RECORD, other, "aa") == [
        "it was built on Orin (compute capability 8.7), here is NVIDIA L4 (8.9)"
    ]


@pytest.mark.parametrize(("here", "fits"), [("10.3.0", True), ("10.13.2", True), ("10.2.0", False), ("11.0.0", False)])
def test_differences__version_compatible_runs_on_later_minor_versions(here: str, fits: bool) -> None:
    record = replace(RECORD, flags=("version_compatible",))
    assert (differences(record, replace(HERE, tensorrt=here), "aa") == []) is fits


@pytest.mark.parametrize(("capability", "fits"), [("8.0", True), ("12.0", True), ("7.5", False)])
def test_differences__hardware_compatible_runs_from_ampere_on(capability: str, fits: bool) -> None:
    record = replace(RECORD, flags=("hardware_ampere_plus",))
    assert (differences(record, replace(HERE, compute_capability=capability), "aa") == []) is fits


def test_choose_engine__the_newest_that_fits_and_is_there(tmp_path: Path) -> None:
    older = replace(RECORD, file="older.engine", built="2025-01-01T00:00:00+00:00")
    newer = replace(RECORD, file="newer.engine", built="2026-06-01T00:00:00+00:00")
    foreign = replace(RECORD, file="foreign.engine", built="2026-07-01T00:00:00+00:00", tensorrt="8.5.3")
    for record in (older, foreign):
        (tmp_path / record.file).write_bytes(b"plan")
    found, problem = choose_engine(tmp_path, [older, newer, foreign], HERE, "aa")
    assert (found, problem) == (older, "")  # newer's file is missing
    (tmp_path / newer.file).write_bytes(b"plan")
    assert choose_engine(tmp_path, [older, newer, foreign], HERE, "aa")[0] == newer


def test_choose_engine__none_fits_says_why_and_what_to_do(tmp_path: Path) -> None:
    found, problem = choose_engine(tmp_path, [RECORD], replace(HERE, tensorrt="11.4.1"), "aa")
    assert found is None
    assert "built with TensorRT 10.3.0, here is 11.4.1" in problem
    assert problem.endswith(f"ptedge build {tmp_path}")
    assert (
        choose_engine(tmp_path, [], HERE, "aa")[1]
        == f"the bundle holds no engine. Build one here: ptedge build {tmp_path}"
    )


def test_read_engine__changed_or_missing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"cannot read .*ptedge build"):
        read_engine(tmp_path, RECORD)
    (tmp_path / RECORD.file).write_bytes(b"plan")
    assert read_engine(tmp_path, RECORD) == b"plan"
    (tmp_path / RECORD.file).write_bytes(b"plam")
    with pytest.raises(ArtifactError, match=r"changed or cut short.*ptedge build"):
        read_engine(tmp_path, RECORD)


def test_add_record__replaces_its_own_and_keeps_the_rest(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{"schema": 1, "class_names": ["car"]}')
    other = replace(RECORD, file="other.engine")
    for record in (RECORD, other, replace(RECORD, sha256="new")):
        add_record(manifest, record)
    values = json.loads(manifest.read_text())
    assert values["class_names"] == ["car"]
    assert records_from_json(values["engines"], "m") == (other, replace(RECORD, sha256="new"))


def test_same_build__only_settings_model_and_machine_count() -> None:
    assert same_build(RECORD, replace(RECORD, sha256="", built="", seconds=12.0, memory_mb=9))
    assert not same_build(RECORD, replace(RECORD, flags=("tf32",)))
    assert not same_build(RECORD, replace(RECORD, onnx_sha256="bb"))


def test_choose_engine__two_stages_only_together(tmp_path: Path) -> None:
    first = replace(RECORD, file="first_stage.a.engine", stage="first")
    second = replace(RECORD, file="second_stage.a.engine", stage="second", seconds=3.0)
    for record in (first, second):
        (tmp_path / record.file).write_bytes(b"plan")
    assert choose_engine(tmp_path, [second, first], HERE, "aa") == (first, "")
    assert other_stage(first, [second, first]) == second and other_stage(second, [second, first]) == first
    assert choose_engine(tmp_path, [second], HERE, "aa")[0] is None
    assert "none of the second stage" in choose_engine(tmp_path, [first], HERE, "aa")[1]
    foreign = replace(second, flags=("tf32",))
    assert "none of the second stage" in choose_engine(tmp_path, [first, foreign], HERE, "aa")[1]
    (tmp_path / second.file).unlink()
    assert "the file is missing" in choose_engine(tmp_path, [first, second], HERE, "aa")[1]
    assert other_stage(RECORD, [RECORD, first, second]) is None


def test_record_to_json__of_one_graph_is_as_it_was() -> None:
    assert "stage" not in record_to_json(RECORD)  # signatures of engines cover these values
    assert record_to_json(replace(RECORD, stage="first"))["stage"] == "first"
    assert engine_name("Orin", "10.3.0", "fp16", "second") == "second_stage.orin-10.3.0-fp16.engine"
