"""Bundles as OCI artifacts: in the registry that holds a fleet's containers, ``oci://host:5000/models/car:v7``.

A file of the bundle is a layer under its name. The version's name goes along as an annotation, and what comes back is
held to it, as the client does not look at the digests of layers.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ptedge.artifacts.trust import Trust
from ptedge.errors import ArtifactError, StoreError, named_extras

from ..options import is_loopback
from .bundles import Moved, arriving, named_files

SCHEME = "oci://"
KIND = "application/vnd.ptedge.bundle.file"
VERSION = "dev.ptedge.version"
FORM = "oci://host:port/repository:tag"
ANSWERS_WITHIN = 10.0  # seconds


@dataclass(frozen=True)
class OciAddress:
    """A place in a registry.

    Attributes:
        target: ``host:port/repository:tag``.
        encrypted: by https; http is for this machine alone.
    """

    target: str
    encrypted: bool


def parse_oci_address(text: str) -> OciAddress:
    """Take an address apart.

    Args:
        text: ``oci://host:port/repository:tag``, or ``...@sha256:...`` to fetch one artifact and no other.

    Raises:
        StoreError: it is none.
    """
    try:
        parts = urlsplit(text)
        repository = parts.path.strip("/")
        good = bool(parts.hostname) and bool(repository) and parts.username is None and not parts.query
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        good = False
    if not good or ":" not in repository.rpartition("/")[2]:
        raise StoreError(f"{text} is no address in a registry. Give {FORM}; for its login: docker login HOST")
    return OciAddress(f"{parts.hostname}{port}/{repository}", not is_loopback(str(parts.hostname)))


def push_oci(path: Path, address: str, trust: Trust | None = None) -> Moved:
    """Put a bundle into a registry; a tag that is there moves to it.

    Args:
        path: bundle folder.
        address: see :func:`parse_oci_address`.
        trust: keys it must be signed with; ``None`` checks its hashes alone.

    Raises:
        ArtifactError: no whole bundle, or not signed by anybody who is trusted.
        StoreError: the registry refuses or is away.
        MissingExtraError: oras is not installed.
    """
    where = parse_oci_address(address)
    version, files = named_files(path, trust)
    client = _client(where)
    # a path may hold a colon, which divides name and kind for the client
    with tempfile.TemporaryDirectory() as folder, _asking("push to", address):
        for name in files:
            (Path(folder) / name).symlink_to((path / name).resolve())
        _reach(where)
        layers = [f"{folder}/{name}:{KIND}" for name in files]
        about = {VERSION: version}
        client.push(where.target, files=layers, disable_path_validation=True, manifest_annotations=about, quiet=True)
    return Moved(version, len(files), len(files))


def pull_oci(address: str, out: Path, trust: Trust | None = None) -> Moved:
    """Fetch a bundle into a new folder, which appears when all of it is there and is what its annotation says.

    Args:
        address: see :func:`parse_oci_address`.
        out: the folder to make.
        trust: as for :func:`push_oci`.

    Raises:
        ArtifactError: it is damaged or no bundle, or not signed by anybody who is trusted.
        StoreError: the registry refuses or is away.
        OutputError: something is at ``out``, or it is not writable.
        MissingExtraError: oras is not installed.
    """
    where = parse_oci_address(address)
    client = _client(where)
    with arriving(out) as waiting:
        with _asking("pull from", address):
            _reach(where)
            manifest = client.get_manifest(where.target)
            layers = manifest.get("layers", ())
            if not layers or any(layer.get("mediaType") != KIND for layer in layers):
                raise ArtifactError(f"{address} holds something other than a bundle. Push one: ptedge bundle push")
            client.pull(where.target, outdir=str(waiting))
        version, files = named_files(waiting, trust)
        if version != (manifest.get("annotations") or {}).get(VERSION) or len(files) != len(layers):
            raise ArtifactError(f"{address} is not what was pushed. Push its bundle again")
    return Moved(version, len(files), len(files))


def _client(where: OciAddress) -> Any:
    """A client; it asks nothing of the network yet. Logins are those of ``docker login``."""
    with named_extras():
        import oras.client
        import oras.logger
    oras.logger.setup_logger(quiet=True)
    return oras.client.OrasClient(insecure=not where.encrypted)


def _reach(where: OciAddress) -> None:
    """Ask the registry for any answer at all: the client tries a host that is not there for two minutes."""
    import requests

    host = where.target.partition("/")[0]
    requests.get(f"{'https' if where.encrypted else 'http'}://{host}/v2/", timeout=ANSWERS_WITHIN)


@contextlib.contextmanager
def _asking(verb: str, address: str) -> Iterator[None]:
    """Requests; what goes wrong is told as one sentence."""
    import requests

    try:
        yield
    # the client raises plain errors for what a registry answers
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        text = " ".join(str(error).split())
        raise StoreError(f"cannot {verb} {address}: {text[:200]}. Check the address, and docker login") from None
