"""Ed25519 keys in the files that ``ssh-keygen`` and ``openssl`` write."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def key_pair(folder: Path, name: str = "key", passphrase: bytes = b"", *, pem: bool = False) -> tuple[Path, Path]:
    """A new key's files, private and public."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / name, folder / f"{name}.pub"
    locked = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    form = PrivateFormat.PKCS8 if pem else PrivateFormat.OpenSSH
    private.write_bytes(key.private_bytes(Encoding.PEM, form, locked))
    if pem:
        public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    else:
        line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        public.write_bytes(line + b" made for a test\n")
    return private, public
