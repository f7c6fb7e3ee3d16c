"""Signatures: who vouches for a list of files. Ed25519 keys as ``ssh-keygen -t ed25519`` writes them, or as PEM.

A signature stands in a small JSON file and covers the canonical text of a :class:`Statement`, which names every file
with its sha256. The files are not in it: whoever checks compares the statement with what lies there.

Reference: RFC 8032 (Ed25519), by the package cryptography.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptedge.errors import ArtifactError, InputError, missing_extra
from ptedge.files import parse_json, read_bounded, write_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = "ptedge-signature-1"
PASSPHRASE = "PTEDGE_SIGN_PASSPHRASE"  # name of the environment variable
_DIGEST = re.compile("[0-9a-f]{64}")
MOST_KEY_BYTES = 64 << 10
MOST_SIGNATURE_BYTES = 256 << 10


@dataclass(frozen=True)
class PublicKey:
    """Half of a key that anyone may have: it checks.

    Attributes:
        raw: 32 bytes of Ed25519.
    """

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """As ``ssh-keygen -l`` shows it: ``SHA256:`` and the hash of the key in SSH's form."""
        kind = b"ssh-ed25519"
        blob = len(kind).to_bytes(4, "big") + kind + len(self.raw).to_bytes(4, "big") + self.raw
        return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


@dataclass(frozen=True)
class SigningKey:
    """Half of a key that its owner keeps: it signs.

    Attributes:
        private: of the package cryptography.
        public: the other half.
    """

    private: Ed25519PrivateKey = field(repr=False)
    public: PublicKey


@dataclass(frozen=True)
class Statement:
    """What is signed.

    Attributes:
        kind: ``bundle`` or ``engine``, so that a signature for one is none for the other.
        files: name -> sha256.
        signed: time, ISO 8601 UTC.
    """

    kind: str
    files: Mapping[str, str]
    signed: str

    def canonical(self) -> bytes:
        """The bytes that are signed: one line a fact, files by name."""
        lines = [FORMAT, self.kind, self.signed, *(f"{digest}  {name}" for name, digest in sorted(self.files.items()))]
        return "\n".join(lines).encode() + b"\n"


@dataclass(frozen=True)
class Signature:
    """A statement, and the proof that somebody made it.

    Attributes:
        statement: what is signed.
        fingerprint: of the key it was signed with, as the file says; :func:`require_signed` proves it.
        value: 64 bytes of Ed25519.
    """

    statement: Statement
    fingerprint: str
    value: bytes


def read_public_keys(path: Path) -> tuple[PublicKey, ...]:
    """Public keys: lines as in ``key.pub`` of ``ssh-keygen``, one key each, or one key as PEM.

    Args:
        path: the file.

    Raises:
        InputError: unreadable, empty, a private key, or keys of another kind.
        MissingExtraError: cryptography is not installed.
    """
    content = _read_key(path)
    if b"PRIVATE KEY" in content:
        raise InputError(f"{path} is a private key, which stays with its owner. Give the public one, {path}.pub")
    serialization = _cryptography()
    lines = [line for line in content.splitlines() if line.strip() and not line.startswith(b"#")]
    if content.lstrip().startswith(b"-----BEGIN"):
        return (_public(path, content, serialization.load_pem_public_key),)
    keys = tuple(_public(path, line, serialization.load_ssh_public_key) for line in lines)
    if not keys:
        raise InputError(f"{path} holds no key. {_HOW}")
    return keys


def read_signing_key(path: Path) -> SigningKey:
    """A private key, as ``ssh-keygen -t ed25519`` or ``openssl genpkey -algorithm ed25519`` writes it.

    A passphrase is taken from the environment variable ``PTEDGE_SIGN_PASSPHRASE``.

    Args:
        path: the file.

    Raises:
        InputError: unreadable, no private key, one of another kind, or a passphrase that is missing or wrong.
        MissingExtraError: cryptography is not installed.
    """
    content = _read_key(path)
    serialization = _cryptography()
    ssh = b"BEGIN OPENSSH PRIVATE KEY" in content
    load = serialization.load_ssh_private_key if ssh else serialization.load_pem_private_key
    secret = os.environ.get(PASSPHRASE)
    try:
        private = load(content, secret.encode() if secret else None)
    except TypeError:  # a passphrase where none is needed, or none where one is
        if secret is None:
            raise InputError(f"{path} is protected by a passphrase. Put it into {PASSPHRASE}") from None
        raise InputError(f"{path} has no passphrase, but {PASSPHRASE} holds one. Unset it") from None
    except Exception as error:  # of the key's own form, its cipher, ...
        told = "the passphrase may be wrong" if secret else type(error).__name__
        raise InputError(f"{path} cannot be read as a private key ({told}). {_HOW}") from None
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if not isinstance(private, Ed25519PrivateKey):
        raise InputError(f"{path} is no Ed25519 key. {_HOW}")
    return SigningKey(private, PublicKey(private.public_key().public_bytes_raw()))


def write_signature(path: Path, kind: str, files: Mapping[str, str], key: SigningKey) -> None:
    """Sign a list of files.

    Args:
        path: file to write.
        kind: of :class:`Statement`.
        files: name -> sha256.
        key: to sign with.

    Raises:
        OutputError: it cannot be written.
    """
    statement = Statement(kind, files, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    document = {
        "format": FORMAT,
        "kind": kind,
        "signed": statement.signed,
        "files": dict(sorted(files.items())),
        "key": key.public.fingerprint,
        "signature": base64.b64encode(key.private.sign(statement.canonical())).decode(),
    }
    write_json(path, document)


def read_signature(path: Path) -> Signature:
    """A signature as it stands in its file; nothing is proved yet.

    Args:
        path: the file.

    Raises:
        ArtifactError: missing, or none.
    """
    try:
        values = parse_json(read_bounded(path, MOST_SIGNATURE_BYTES))
        return _from_json(values)
    except FileNotFoundError:
        raise ArtifactError(f"{path} is missing, so nobody vouches for this") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ArtifactError(f"{path} is no signature of ptedge, or damaged") from None


def require_signed(path: Path, kind: str, files: Mapping[str, str], keys: tuple[PublicKey, ...]) -> Signature:
    """Refuse files that none of some keys has signed as they are now.

    Args:
        path: file with the signature.
        kind: what must have been signed.
        files: name -> sha256 as it is found now.
        keys: any of them will do.

    Returns:
        The signature, which is good.

    Raises:
        ArtifactError: no signature, by another key, of other files, or not what was signed: which of these, and of
            which file.
        MissingExtraError: cryptography is not installed.
    """
    found = read_signature(path)
    key = next((key for key in keys if key.fingerprint == found.fingerprint), None)
    if key is None:
        raise ArtifactError(f"{path} was signed with {found.fingerprint}, which --trust does not name")
    if not _is_good(found, key):
        raise ArtifactError(f"{path} is not what {found.fingerprint} signed: it was changed afterwards")
    said = found.statement
    if said.kind != kind:
        raise ArtifactError(f"{path} is a signature for {said.kind} files, not for {kind} files")
    for name in sorted(files.keys() | said.files.keys()):
        if name not in files:
            raise ArtifactError(f"{path.parent} lacks {name}, which was signed on {said.signed}")
        if name not in said.files:
            raise ArtifactError(f"{path.parent} lists {name}, which was not signed on {said.signed}")
        if files[name] != said.files[name]:
            raise ArtifactError(f"{path.parent}: {name} is not the one that was signed on {said.signed}")
    return found


_HOW = 'Make one with: ssh-keygen -t ed25519 -f KEY -N ""'


def _is_good(found: Signature, key: PublicKey) -> bool:
    _cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(found.value, found.statement.canonical())
    except InvalidSignature:
        return False
    return True


def _from_json(values: Any) -> Signature:
    files, signed, key = values["files"], values["signed"], values["key"]
    texts = [values["kind"], signed, key, *files, *files.values()]
    # one line a fact: a line break in a fact would make two
    if values["format"] != FORMAT or not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ValueError("not of this form")
    if not all(_DIGEST.fullmatch(digest) for digest in files.values()):
        raise ValueError("a hash that is none")
    value = base64.b64decode(values["signature"], validate=True)
    return Signature(Statement(values["kind"], files, signed), key, value)


def _public(path: Path, content: bytes, load: Any) -> PublicKey:
    try:
        raw = load(content).public_bytes_raw()
    except AttributeError:
        raise InputError(f"{path} holds a key that is not Ed25519. {_HOW}") from None
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read as a public key ({type(error).__name__}). {_HOW}") from None
    except Exception as error:  # UnsupportedAlgorithm, which cannot be imported without the package
        raise InputError(f"{path} holds a key that is not Ed25519 ({type(error).__name__}). {_HOW}") from None
    if len(raw) != 32:
        raise InputError(f"{path} holds a key that is not Ed25519. {_HOW}")
    return PublicKey(raw)


def _read_key(path: Path) -> bytes:
    try:
        return read_bounded(path, MOST_KEY_BYTES)
    except OSError as error:
        raise InputError(f"cannot read the key {path}: {error.strerror}. {_HOW}") from None


def _cryptography() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ModuleNotFoundError:
        raise missing_extra("cryptography", "sign") from None
    return serialization
