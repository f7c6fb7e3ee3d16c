"""The commands export and verify."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from ptedge.artifacts.conversion import Conversion
from ptedge.cli import cli
from ptedge.errors import ArtifactError, InputError
from ptedge.export.cli import describe_conversion
from ptedge.export.precision.int8_choice import LIMIT
from ptedge.export.verify.check import BundleCheck


def test_export__writes_a_bundle(checkpoint: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--size", "64x80"])
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "input 1 x 64x80" in result.stderr
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["manifest.json", "model.onnx"]


@pytest.mark.parametrize("size", ["64", "64x", "ax80", "64x80x3"])
def test_export__a_size_that_is_none_is_a_usage_error(checkpoint: Path, tmp_path: Path, size: str) -> None:
    result = CliRunner().invoke(cli, ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--size", size])
    assert result.exit_code == 2
    assert "height x width" in result.stderr


def test_export__a_size_off_the_grid(checkpoint: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--size", "100x128"])
    assert isinstance(result.exception, InputError)
    assert "--size 96x128" in str(result.exception)


def test_export__calibrate_without_int8(checkpoint: Path, tmp_path: Path) -> None:
    arguments = ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--calibrate", "frames"]
    assert isinstance(CliRunner().invoke(cli, arguments).exception, InputError)


def test_export__an_int8_limit_without_int8(checkpoint: Path, tmp_path: Path) -> None:
    arguments = ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--precision", "fp16", "--int8-error", "0.1"]
    assert str(CliRunner().invoke(cli, arguments).exception) == "--int8-error belongs to --precision int8; leave it out"


def test_export__the_default_of_the_int8_limit_is_as_told() -> None:
    assert f"Default: {LIMIT:g}." in " ".join(CliRunner().invoke(cli, ["export", "--help"]).output.split())


def test_export__says_what_was_converted(checkpoint: Path, tmp_path: Path) -> None:
    arguments = ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--precision", "fp16"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert (
        "fp16: 35 layers converted, 99% of all multiplications; float32 in /backbone/conv_stem/Conv, " in result.stderr
    )


def test_describe_conversion__names_few_layers_and_counts_many() -> None:
    few = Conversion(2, ("/a", "/b"), 64, "percentile 99.99", tuple("cdefgh"), 0.8946, 0.0143)
    assert describe_conversion("int8", few) == (
        "int8: 2 layers converted, 89% of all multiplications, calibrated on 64 frames (percentile 99.99), "
        "which changes the predictors' outputs by 1.4%; "
        "float16 in c, d, e, f, g, h; float32 in /a, /b, and in all that follows the predictors"
    )
    many = replace(few, kept_float16=tuple("cdefghi"))
    assert "; float16 in 7 others (manifest.json, conversion, names them); " in describe_conversion("int8", many)


def test_verify__json_is_one_document(bundle: Path, checkpoint: Path) -> None:
    arguments = ["verify", str(bundle), "--backend", "cpu", "--against", str(checkpoint), "--json"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["passed"], document["compared_nothing"]) == (True, None)
    assert document["against"] == str(checkpoint)
    assert document["compared_detections"] > 0
    assert result.stderr == ""


def test_verify__a_bundle_alone_on_one_backend_compares_nothing(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "bundle")
    result = CliRunner().invoke(cli, ["verify", str(tmp_path / "bundle"), "--backend", "cpu", "--json"])
    document = json.loads(result.stdout)
    assert (document["passed"], document["compared_detections"], document["against"]) == (False, 0, None)
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == document["compared_nothing"]
    assert str(result.exception).endswith("--against CHECKPOINT")


def test_verify__int8_without_frames_compares_nothing(
    bundle: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptedge.export.verify import verify as module

    made = BundleCheck("noise", True, "2 images", judged=False, backend="cpu", compared=7)
    monkeypatch.setattr(module, "verify_bundle", lambda *_, **__: ([made], checkpoint))
    error = str(CliRunner().invoke(cli, ["verify", str(bundle)]).exception)
    assert "an int8 bundle is judged on frames, and none were given. Give frames that show objects: --frames" in error


def test_verify__failure_shows_the_table_and_one_sentence(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptedge.export.verify import verify as module

    checks = [BundleCheck("files", True, "match"), BundleCheck("promises", False, "black: a label has no class")]
    monkeypatch.setattr(module, "verify_bundle", lambda *_, **__: (checks, None))
    result = CliRunner().invoke(cli, ["verify", str(bundle)])
    lines = result.stdout.splitlines()
    assert lines[:2] == ["ok    files     match", "FAIL  promises  black: a label has no class"]
    assert lines[2].startswith("limits of float32: at least 99% matched, box 0.1 px")
    assert isinstance(result.exception, ArtifactError)
    assert "fails 1 of 2 checks, first: promises (black: a label has no class)" in str(result.exception)


def test_verify__backend_that_does_not_exist(bundle: Path) -> None:
    result = CliRunner().invoke(cli, ["verify", str(bundle), "--backend", "cpu,npu"])
    assert result.exit_code == 2
    assert "'npu' is none of cpu, cuda, tensorrt" in result.output
