"""What a TensorRT engine file is: its record in the bundle, its own header, and whether it runs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.artifacts.engine_file import EngineRecord, Platform, differences, records_to_json

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
    with open(path, "rb") as file:
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
    from ptedge.artifacts.bundle import MANIFEST_NAME, open_bundle
    from ptedge.files import sha256_file

    digest = sha256_file(path)
    about: dict[str, Any] = {"kind": "TensorRT engine", "sha256": digest}
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
        about["here"] = fitness(path.parent, record, bundle.model_hash, digest)
    return {**about, "bundle": bundle.manifest.to_json()}


def describe_engines(folder: Path, records: tuple[EngineRecord, ...], model_hash: str) -> dict[str, str]:
    """One line for each engine of a bundle, in the manifest or only in the folder.

    Args:
        folder: of the bundle.
        records: from its manifest.
        model_hash: of its ONNX file.

    Returns:
        File name -> whether it runs here, and what to do if not.
    """
    known = {record.file: fitness(folder, record, model_hash) for record in records}
    for file in sorted(folder.glob("*.engine")):
        known.setdefault(file.name, f"not in the manifest. Build one: ptedge build {folder}")
    return known


def fitness(folder: Path, record: EngineRecord, model_hash: str, digest: str | None = None) -> str:
    """Whether an engine runs on this machine, in words, with what to do if not.

    Args:
        folder: of the bundle.
        record: of the engine.
        model_hash: of the bundle's ONNX file.
        digest: sha256 of the engine file, where it is known already.
    """
    from ptedge.machine.driver import ask_driver
    from ptedge.machine.tensorrt_checks import tensorrt_version

    driver, version = ask_driver(), tensorrt_version()
    problems = []
    if not (folder / record.file).is_file():
        problems.append("the file is missing")
    elif digest is not None and digest != record.sha256:
        problems.append("the file is not the one that was built (another sha256)")
    if driver.gpus and version:
        gpu, cuda = driver.gpus[0], driver.cuda or (0, 0)
        here = Platform(version, f"{cuda[0]}.{cuda[1]}", gpu.name, gpu.compute_capability)
        problems += differences(record, here, model_hash)
    else:
        if record.onnx_sha256 != model_hash:
            problems.append("it was built from another model.onnx")
        lack = "no GPU answers here" if not driver.gpus else "TensorRT is not installed here"
        problems.append(f"{lack} (it is for TensorRT {record.tensorrt} on {record.gpu}); see ptedge doctor")
    if not problems:
        return "runs on this machine"
    return f"does not run here: {', '.join(problems)}. Build one for this machine: ptedge build {folder}"
