from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from keys import key_pair

from ptedge.artifacts.signature import (
    Statement,
    read_public_keys,
    read_signature,
    read_signing_key,
    require_signed,
    write_signature,
)
from ptedge.errors import ArtifactError, InputError, MissingExtraError

FILES = {"a": "1" * 64, "b c": "2" * 64}


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    private, _ = key_pair(tmp_path)
    write_signature(tmp_path / "x.sig", "bundle", FILES, read_signing_key(private))
    return tmp_path / "x.sig"


def keys_of(path: Path) -> Any:
    return read_public_keys(path.with_name("key.pub"))


def test_canonical__by_hand() -> None:
    statement = Statement("bundle", {"b": "2" * 64, "a": "1" * 64}, "2026-01-02T03:04:05+00:00")
    expected = f"ptedge-signature-1\nbundle\n2026-01-02T03:04:05+00:00\n{'1' * 64}  a\n{'2' * 64}  b\n"
    assert statement.canonical() == expected.encode()


@pytest.mark.parametrize("pem", [False, True])
def test_require_signed__both_forms_of_keys(tmp_path: Path, pem: bool) -> None:
    private, public = key_pair(tmp_path, pem=pem)
    write_signature(tmp_path / "x.sig", "bundle", FILES, read_signing_key(private))
    found = require_signed(tmp_path / "x.sig", "bundle", FILES, read_public_keys(public))
    assert dict(found.statement.files) == FILES


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen on this machine")
def test_keys__of_ssh_keygen_with_its_fingerprint(tmp_path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(command, check=True)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(tmp_path / "key")], capture_output=True, check=True).stdout
    key = read_signing_key(tmp_path / "key")
    assert key.public.fingerprint == shown.decode().split()[1]
    assert read_public_keys(tmp_path / "key.pub") == (key.public,)


def test_read_public_keys__several_lines_and_remarks(tmp_path: Path) -> None:
    lines = [key_pair(tmp_path, name)[1].read_bytes() for name in ("one", "two")]
    (tmp_path / "all").write_bytes(b"# of the workshop\n" + lines[0] + b"\n" + lines[1])
    assert len(set(read_public_keys(tmp_path / "all"))) == 2


def test_read_signing_key__passphrase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private, public = key_pair(tmp_path, passphrase=b"open sesame", pem=True)
    with pytest.raises(InputError, match=r"protected by a passphrase. Put it into PTEDGE_SIGN_PASSPHRASE"):
        read_signing_key(private)
    monkeypatch.setenv("PTEDGE_SIGN_PASSPHRASE", "wrong")
    with pytest.raises(InputError, match="passphrase may be wrong"):
        read_signing_key(private)
    monkeypatch.setenv("PTEDGE_SIGN_PASSPHRASE", "open sesame")
    assert read_signing_key(private).public in read_public_keys(public)
    with pytest.raises(InputError, match="has no passphrase"):
        read_signing_key(key_pair(tmp_path, "plain", pem=True)[0])


def test_keys__that_are_none(tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    with pytest.raises(InputError, match=r"is a private key.*key\.pub"):
        read_public_keys(private)
    with pytest.raises(InputError, match="cannot be read as a private key"):
        read_signing_key(public)
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(InputError, match=r"holds no key.*ssh-keygen"):
        read_public_keys(tmp_path / "empty")
    (tmp_path / "text").write_text("hello world\n")
    with pytest.raises(InputError, match="holds a key that is not Ed25519"):
        read_public_keys(tmp_path / "text")
    (tmp_path / "cut").write_bytes(public.read_bytes()[:40])
    with pytest.raises(InputError, match="cannot be read as a public key"):
        read_public_keys(tmp_path / "cut")
    with pytest.raises(InputError, match="cannot read the key"):
        read_public_keys(tmp_path / "absent")


def test_keys__of_another_kind(tmp_path: Path) -> None:
    other = generate_private_key(SECP256R1())
    (tmp_path / "ec").write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "ec.pub").write_bytes(other.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    with pytest.raises(InputError, match="no Ed25519 key"):
        read_signing_key(tmp_path / "ec")
    with pytest.raises(InputError, match="not Ed25519"):
        read_public_keys(tmp_path / "ec.pub")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": "1" * 64}, "lacks b c, which was signed"),
        ({**FILES, "new": "3" * 64}, "lists new, which was not signed"),
        ({**FILES, "a": "3" * 64}, "a is not the one that was signed"),
    ],
)
def test_require_signed__other_files(signed: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(ArtifactError, match=words):
        require_signed(signed, "bundle", files, keys_of(signed))


def test_require_signed__another_key_or_kind(signed: Path) -> None:
    _, other = key_pair(signed.parent, "other")
    with pytest.raises(ArtifactError, match="which --trust does not name"):
        require_signed(signed, "bundle", FILES, read_public_keys(other))
    with pytest.raises(ArtifactError, match="signature for bundle files, not for engine files"):
        require_signed(signed, "engine", FILES, keys_of(signed))


@pytest.mark.parametrize(
    "change",
    [
        {"files": {**FILES, "a": "3" * 64}},
        {"signed": "2030-01-01T00:00:00+00:00"},
        {"kind": "engine"},
        {"signature": "A" * 88},
    ],
)
def test_require_signed__signature_changed_afterwards(signed: Path, change: dict[str, Any]) -> None:
    values = json.loads(signed.read_text()) | change
    signed.write_text(json.dumps(values))
    with pytest.raises(ArtifactError, match=r"changed afterwards|damaged"):
        require_signed(signed, values["kind"], values["files"], keys_of(signed))


def test_require_signed__key_that_only_claims_a_fingerprint(signed: Path) -> None:
    """Signed by another key that writes the trusted one's fingerprint."""
    private, _ = key_pair(signed.parent, "other")
    trusted = keys_of(signed)
    write_signature(signed, "bundle", FILES, read_signing_key(private))
    signed.write_text(json.dumps(json.loads(signed.read_text()) | {"key": trusted[0].fingerprint}))
    with pytest.raises(ArtifactError, match="changed afterwards"):
        require_signed(signed, "bundle", FILES, trusted)


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"a\nb": "1" * 64}},
        {"files": {"a": "1" * 63}},
        {"files": {"a": 1}},
        {"files": 3},
        {"signed": "x\ny"},
        {"format": "other"},
        {"signature": "no base64!"},
        {"key": None},
    ],
)
def test_read_signature__of_another_form(signed: Path, change: dict[str, Any]) -> None:
    signed.write_text(json.dumps(json.loads(signed.read_text()) | change))
    with pytest.raises(ArtifactError, match="no signature of ptedge, or damaged"):
        read_signature(signed)


def test_read_signature__missing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is missing, so nobody vouches"):
        read_signature(tmp_path / "x.sig")


def test_read_public_keys__without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, public = key_pair(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r'pip install "ptedge\[sign\]"'):
        read_public_keys(public)
