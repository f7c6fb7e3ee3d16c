from __future__ import annotations

from pathlib import Path

import pytest
from drift_streams import reference
from keys import key_pair
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.bundle_reference import write_reference
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust
from ptedge.errors import ArtifactError, InputError


def test_write_reference__model_and_engines_stay(tmp_path: Path) -> None:
    before = tiny_bundle(tmp_path / "b")
    (tmp_path / "b" / "model.engine").write_bytes(b"engine")
    write_reference(open_bundle(tmp_path / "b"), reference())
    after = open_bundle(tmp_path / "b")
    assert after.model_hash == before.model_hash and (tmp_path / "b" / "model.engine").exists()
    assert after.manifest.reference == reference()


def test_write_bundle__a_reference_of_the_checkpoint_is_in_the_manifest_alone(tmp_path: Path) -> None:
    with_one = tiny_bundle(tmp_path / "a", reference=reference())
    without = tiny_bundle(tmp_path / "b")
    assert with_one.model_hash == without.model_hash  # the graph carries the rest of the manifest
    assert open_bundle(tmp_path / "a").manifest.reference == reference()
    assert open_bundle(tmp_path / "a" / "model.onnx").manifest.reference is None


def test_write_reference__signs_again_or_is_signed_no_more(tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    key, trust = read_signing_key(private), Trust.read([public])
    tiny_bundle(tmp_path / "b")
    write_reference(open_bundle(tmp_path / "b"), reference(), key)
    assert open_bundle(tmp_path / "b", trust).manifest.reference is not None
    write_reference(open_bundle(tmp_path / "b"), reference(seed=1))
    with pytest.raises(ArtifactError):
        open_bundle(tmp_path / "b", trust)


def test_write_reference__needs_a_folder(tmp_path: Path) -> None:
    tiny_bundle(tmp_path / "b")
    with pytest.raises(InputError, match="Give the folder"):
        write_reference(open_bundle(tmp_path / "b" / "model.onnx"), reference())
