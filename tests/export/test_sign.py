"""``ptedge sign`` and ``ptedge export --sign``, and that the device then takes the bundle."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from keys import key_pair
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.artifacts.trust import Trust, require_engine
from ptedge.cli import cli
from ptedge.errors import ArtifactError, InputError
from ptedge.export.sign import sign_all


def with_engine(folder: Path, content: bytes) -> EngineRecord:
    digest = hashlib.sha256(content).hexdigest()
    record = EngineRecord("m.engine", digest, open_bundle(folder).model_hash, "fp32", "10.3.0", "12.6", "Orin", "8.7")
    (folder / "m.engine").write_bytes(content)
    add_record(folder / "manifest.json", record)
    return record


def test_sign_all__bundle_and_engines(tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    trust = Trust.read([public])
    assert trust is not None
    bundle = tiny_bundle(tmp_path / "b").path
    record = with_engine(bundle, b"engine")
    assert len(sign_all(bundle, private)) == 2
    assert open_bundle(bundle, trust).manifest.engines == (record,)
    require_engine(bundle, record, trust)


def test_sign_all__nothing_is_signed_where_an_engine_is_another(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b").path
    with_engine(bundle, b"engine")
    (bundle / "m.engine").write_bytes(b"another")
    with pytest.raises(ArtifactError, match="does not match the manifest"):
        sign_all(bundle, key_pair(tmp_path)[0])
    assert not list(bundle.glob("*.sig"))


def test_sign__command_refuses_a_file_alone(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    result = CliRunner().invoke(cli, ["sign", str(bundle.model_path), "--key", str(key_pair(tmp_path)[0])])
    assert isinstance(result.exception, InputError)
    assert "Give the folder" in str(result.exception)


def test_export__signed_and_verified(checkpoint: Path, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    arguments = ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--size", "64x80", "--sign", str(private)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    told = CliRunner().invoke(cli, ["verify", str(tmp_path / "b"), "--backend", "cpu", "--trust", str(public)])
    assert "signature" in told.stdout and "signed by SHA256:" in told.stdout
    _, other = key_pair(tmp_path, "other")
    refused = CliRunner().invoke(cli, ["verify", str(tmp_path / "b"), "--trust", str(other)])
    assert isinstance(refused.exception, ArtifactError)


def test_export__a_key_that_is_none_is_told_before_the_work(checkpoint: Path, tmp_path: Path) -> None:
    arguments = ["export", str(checkpoint), "--out", str(tmp_path / "b"), "--sign", str(tmp_path / "absent")]
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, InputError)
    assert not (tmp_path / "b").exists()
