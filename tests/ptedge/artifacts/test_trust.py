from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from keys import key_pair
from tiny_model import tiny_bundle, tiny_manifest, tiny_onnx

from ptedge.artifacts.bundle import Bundle, open_bundle, sign_again, write_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.artifacts.signature import SigningKey, read_signing_key
from ptedge.artifacts.trust import Trust, require_engine, sign_engine
from ptedge.errors import ArtifactError

ENGINE = EngineRecord("m.engine", "1" * 64, "2" * 64, "fp32", "10.3.0", "12.6", "Orin", "8.7")


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return read_signing_key(key_pair(tmp_path)[0])


@pytest.fixture
def trust(key: SigningKey) -> Trust:
    return Trust((key.public,))


@pytest.fixture
def bundle(tmp_path: Path, key: SigningKey) -> Path:
    return write_bundle(tmp_path / "b", tiny_manifest(), tiny_onnx(), key).path


def edit(bundle: Path, **changes: Any) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(bundle: Path, trust: Trust) -> str:
    with pytest.raises(ArtifactError) as caught:
        open_bundle(bundle, trust)
    return str(caught.value)


def test_read__several_files_and_none(tmp_path: Path) -> None:
    paths = [key_pair(tmp_path, name)[1] for name in ("one", "two")]
    made = Trust.read(paths)
    assert made is not None and len(made.keys) == 2
    assert Trust.read([]) is None


def test_open_bundle__signed_and_trusted(bundle: Path, key: SigningKey, trust: Trust) -> None:
    opened = open_bundle(bundle, trust)
    assert opened.trust == trust
    assert opened.signature.startswith(f"signed by {key.public.fingerprint} on 20")


def test_open_bundle__without_trust_says_that_nothing_was_checked(bundle: Path, tmp_path: Path) -> None:
    assert "not checked (that needs --trust KEY)" in open_bundle(bundle).signature
    (bundle / "bundle.sig").write_text("{}")
    assert open_bundle(bundle).signature.startswith("damaged")
    assert "not who made it" in open_bundle(tiny_bundle(tmp_path / "plain").path).signature


def test_open_bundle__manifest_written_anew_with_the_same_content(bundle: Path, trust: Trust) -> None:
    values = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps(dict(reversed(values.items())), indent=7))
    open_bundle(bundle, trust)


def test_open_bundle__unsigned(bundle: Path, trust: Trust) -> None:
    (bundle / "bundle.sig").unlink()
    assert "bundle.sig is missing, so nobody vouches" in refused(bundle, trust)


def test_open_bundle__another_key(bundle: Path, tmp_path: Path) -> None:
    other = Trust.read([key_pair(tmp_path, "other")[1]])
    assert other is not None
    assert "which --trust does not name" in refused(bundle, other)


def test_open_bundle__changed_manifest(bundle: Path, trust: Trust) -> None:
    edit(bundle, lineage={"kind": "adapted"})
    assert "manifest.json without its engines is not the one that was signed" in refused(bundle, trust)
    open_bundle(bundle)  # its hashes alone show nothing


def test_open_bundle__changed_model_with_a_hash_to_match(bundle: Path, tmp_path: Path, trust: Trust) -> None:
    other = tiny_bundle(tmp_path / "other", score_threshold=0.2)
    for name in ("manifest.json", "model.onnx"):
        shutil.copy(other.path / name, bundle / name)
    assert "is not the one that was signed" in refused(bundle, trust)


def test_open_bundle__changed_model_alone(bundle: Path, trust: Trust) -> None:
    (bundle / "model.onnx").write_bytes((bundle / "model.onnx").read_bytes() + b"\x08\x08")
    assert "does not match the manifest" in refused(bundle, trust)


def test_open_bundle__old_manifest_beside_a_new_model(bundle: Path, tmp_path: Path, key: SigningKey) -> None:
    old = (bundle / "manifest.json").read_bytes()
    write_bundle(bundle, tiny_manifest(score_threshold=0.2), tiny_onnx(), key)
    (bundle / "manifest.json").write_bytes(old)
    assert "is not the one that was signed" in refused(bundle, Trust((key.public,)))


def test_open_bundle__old_signature_beside_a_new_bundle(bundle: Path, key: SigningKey) -> None:
    old = (bundle / "bundle.sig").read_bytes()
    write_bundle(bundle, tiny_manifest(score_threshold=0.2), tiny_onnx(), key)
    (bundle / "bundle.sig").write_bytes(old)
    assert "is not the one that was signed" in refused(bundle, Trust((key.public,)))


def test_open_bundle__a_file_nobody_signed(bundle: Path, trust: Trust) -> None:
    (bundle / "plugin.so").write_bytes(b"x")
    assert "holds 'plugin.so', which nobody signed" in refused(bundle, trust)


def test_open_bundle__a_listed_file_nobody_signed(bundle: Path, trust: Trust) -> None:
    files = json.loads((bundle / "manifest.json").read_text())["files"]
    (bundle / "more.bin").write_bytes(b"")
    edit(bundle, files={**files, "more.bin": hashlib.sha256().hexdigest()})
    assert "manifest.json without its engines is not the one that was signed" in refused(bundle, trust)


def test_open_bundle__an_engine_added_later_leaves_the_signature_good(bundle: Path, trust: Trust) -> None:
    (bundle / "m.engine").write_bytes(b"engine")
    add_record(bundle / "manifest.json", ENGINE)
    assert open_bundle(bundle, trust).manifest.engines == (ENGINE,)


def test_open_bundle__a_file_alone_carries_no_signature(bundle: Path, trust: Trust) -> None:
    with pytest.raises(ArtifactError, match="carries no signature"):
        open_bundle(bundle / "model.onnx", trust)


def test_sign_again__after_a_change(bundle: Path, key: SigningKey, trust: Trust) -> None:
    edit(bundle, lineage={"kind": "adapted"})
    sign_again(open_bundle(bundle), key)
    assert isinstance(open_bundle(bundle, trust), Bundle)


def test_require_engine__signed(tmp_path: Path, key: SigningKey, trust: Trust) -> None:
    sign_engine(tmp_path, ENGINE, key)
    require_engine(tmp_path, ENGINE, trust)


@pytest.mark.parametrize("changes", [{"sha256": "3" * 64}, {"onnx_sha256": "3" * 64}, {"tensorrt": "10.4.0"}])
def test_require_engine__another_record(tmp_path: Path, key: SigningKey, trust: Trust, changes: dict[str, Any]) -> None:
    sign_engine(tmp_path, ENGINE, key)
    with pytest.raises(ArtifactError, match=r"is not the one that was signed.*ptedge build"):
        require_engine(tmp_path, replace(ENGINE, **changes), trust)


def test_require_engine__unsigned_or_by_another(tmp_path: Path, trust: Trust) -> None:
    with pytest.raises(ArtifactError, match=r"m\.engine\.sig is missing.*--sign KEY"):
        require_engine(tmp_path, ENGINE, trust)
    sign_engine(tmp_path, ENGINE, read_signing_key(key_pair(tmp_path, "other")[0]))
    with pytest.raises(ArtifactError, match="which --trust does not name"):
        require_engine(tmp_path, ENGINE, trust)


def test_require_engine__signature_of_the_bundle_is_none_for_an_engine(
    bundle: Path, key: SigningKey, trust: Trust
) -> None:
    shutil.copy(bundle / "bundle.sig", bundle / "m.engine.sig")
    with pytest.raises(ArtifactError, match="not for engine files"):
        require_engine(bundle, ENGINE, trust)
