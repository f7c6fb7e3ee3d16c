"""What a TensorRT engine file is: its record in the bundle, its own header, and whether it runs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME, open_bundle
from ptedge.artifacts.engine_file import records_to_json
from ptedge.commands.describe_bundle import main_facts_first
from ptedge.commands.engine_fit import describe_fit, engine_host
from ptedge.commands.file_digest import digest_of
from ptedge.files import open_regular

# TensorRT 8.5 and later begin a file with these letters (a 32-bit number, little-endian); the version that wrote it
# stands in four bytes further on. NVIDIA documents neither, so both are taken only when they look right.
MAGIC = b"ftrt"
VERSION_AT = 24
KNOWN_MAJORS = range(8, 21)


def header_version(path: Path) -> str | None:
    """Version of TensorRT that a plan's own header names, as far as it can be read.

    Args:
        path: engine file.

    Returns:
        For example ``10.3.0.26``; ``None`` where the header is of another form.
    """
    with open_regular(path) as file:
        head = file.read(VERSION_AT + 4)
    numbers = head[VERSION_AT : VERSION_AT + 4]
    if not head.startswith(MAGIC) or len(numbers) < 4 or numbers[0] not in KNOWN_MAJORS:
        return None
    return ".".join(str(number) for number in numbers)


def describe_engine(path: Path) -> dict[str, Any]:
    """What an engine file is.

    Args:
        path: engine file; the bundle it lies in knows where it came from.

    Raises:
        ArtifactError: the bundle around it is broken.
    """
    digest = digest_of(path)
    about: dict[str, Any] = {"path": str(path), "bytes": path.stat().st_size}
    about |= {"kind": "TensorRT engine", "sha256": digest}
    version = header_version(path)
    if version is not None:
        about["tensorrt_in_header"] = version
    if not (path.parent / MANIFEST_NAME).is_file():
        return {**about, "here": "unknown: it lies in no bundle, so nothing says what it was built for"}
    bundle = open_bundle(path.parent)
    record = next((record for record in bundle.manifest.engines if record.file == path.name), None)
    if record is None:
        about["here"] = f"unknown: the manifest has no record of it. Build one: ptedge build {path.parent}"
    else:
        about |= {name: value for name, value in records_to_json([record])[0].items() if name not in ("file", "sha256")}
        about["here"] = describe_fit(
            path.parent, record, bundle.model_hash, engine_host(backend=record.backend), digest
        )
    return {**about, "bundle": main_facts_first(bundle.manifest)}
