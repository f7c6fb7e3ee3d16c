"""TensorRT engines of a bundle: what ``manifest.json`` records of each, and whether one fits the machine it is on.

An engine file is untouched TensorRT output. It runs only with the TensorRT version and on the GPU architecture it was
built with (unless built to be compatible), so all of that stands in the manifest and is checked before loading.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.artifacts.conversion import PRECISIONS
from ptedge.config import from_dict, require_one_of, to_dict
from ptedge.errors import ArtifactError, ConfigError
from ptedge.files import parse_json, read_bounded, write_json

ENGINE_SUFFIX = ".engine"
MOST_ENGINE_BYTES = 2 << 30
MOST_ENGINES = 100
RTX = "tensorrt-rtx"
PRODUCTS = {"tensorrt": "TensorRT", RTX: "TensorRT-RTX"}  # backends that run engines, as their maker calls them
STAGES = ("whole", "first", "second")  # what an engine runs: the one graph, or a stage of a model in two


@dataclass(frozen=True)
class Platform:
    """What an engine is bound to.

    Attributes:
        tensorrt: version of TensorRT or TensorRT-RTX, for example ``10.3.0``.
        cuda: version of the CUDA driver interface, for example ``12.6``.
        gpu: name of the device.
        compute_capability: for example ``8.7``.
    """

    tensorrt: str
    cuda: str
    gpu: str
    compute_capability: str


@dataclass(frozen=True)
class EngineRecord:
    """What the manifest says of one engine file.

    Attributes:
        file: name inside the bundle.
        sha256: of the file.
        onnx_sha256: of the ``model.onnx`` it was built from.
        precision: of the bundle: ``fp32``, ``fp16`` or ``int8``.
        tensorrt: version that built it, of TensorRT or TensorRT-RTX.
        cuda: version of the CUDA driver interface there; empty of TensorRT-RTX, which builds without a GPU.
        gpu: device it was built on; of TensorRT-RTX what it was built for.
        compute_capability: of that device; of TensorRT-RTX all that it was built for, with commas.
        flags: what the builder was told, in words: ``tf32``, ``version_compatible``, ``hardware_ampere_plus``...
        workspace_mb: limit of scratch memory while building, in MiB.
        optimization_level: of the builder; -1 where the version has none.
        built: time, ISO 8601 UTC.
        seconds: how long building took.
        memory_mb: peak memory of the building process in MiB; 0 where unknown.
        backend: what runs it, a key of ``PRODUCTS``.
        stage: one of ``STAGES``; an engine of a stage runs together with that of the other.
    """

    file: str
    sha256: str
    onnx_sha256: str
    precision: str
    tensorrt: str
    cuda: str
    gpu: str
    compute_capability: str
    flags: tuple[str, ...] = ()
    workspace_mb: int = 0
    optimization_level: int = -1
    built: str = ""
    seconds: float = 0.0
    memory_mb: int = 0
    backend: str = "tensorrt"
    stage: str = "whole"

    def __post_init__(self) -> None:
        require_one_of("engine stage", self.stage, STAGES)
        require_one_of("engine backend", self.backend, tuple(PRODUCTS))
        require_one_of("engine precision", self.precision, PRECISIONS)
        if Path(self.file).name != self.file or not self.file.endswith(ENGINE_SUFFIX):
            raise ValueError(f"engine file is {self.file!r}; it must be a name ending in {ENGINE_SUFFIX}")


def engine_name(gpu: str, tensorrt: str, precision: str, stage: str = "whole") -> str:
    """File name of an engine: ``model.<gpu>-<trt>-<precision>.engine``, of a stage ``first_stage.<gpu>...``.

    Args:
        gpu: device name as CUDA reports it.
        tensorrt: version.
        precision: of the bundle.
        stage: one of ``STAGES``.
    """
    what = "model" if stage == "whole" else f"{stage}_stage"
    slug = re.sub(r"[^a-z0-9]+", "_", gpu.lower()).strip("_") or "gpu"
    return f"{what}.{slug}-{tensorrt}-{precision}{ENGINE_SUFFIX}"


def records_from_json(values: Any, where: str) -> tuple[EngineRecord, ...]:
    """Read the manifest's ``engines``.

    Raises:
        ArtifactError: not a list of such records.
    """
    if not isinstance(values, list) or not all(isinstance(value, Mapping) for value in values):
        raise ArtifactError(f"{where}: engines must be a list of tables. Build again: ptedge build BUNDLE")
    if len(values) > MOST_ENGINES:
        raise ArtifactError(f"{where}: engines has {len(values)} entries; {MOST_ENGINES} are the most")
    try:
        return tuple(from_dict(EngineRecord, value, f"{where}: engines") for value in values)
    except ConfigError as error:
        raise ArtifactError(f"{error}. Build again: ptedge build BUNDLE") from None


def records_to_json(records: Sequence[EngineRecord]) -> list[dict[str, Any]]:
    """The manifest's ``engines`` as plain values."""
    return [record_to_json(record) for record in records]


def record_to_json(record: EngineRecord) -> dict[str, Any]:
    """A record as plain values, as signatures cover it: later fields only where they say what was not so before."""
    added = {"stage": "whole", "backend": "tensorrt"}
    return {name: value for name, value in to_dict(record).items() if added.get(name) != value}


def add_record(manifest_path: Path, record: EngineRecord) -> None:
    """Enter an engine into ``manifest.json``; one of the same file name is replaced.

    Args:
        manifest_path: of the bundle.
        record: what to enter.

    Raises:
        ArtifactError: the manifest cannot be read.
        OutputError: it cannot be written; what stood there is untouched.
    """
    try:
        values = parse_json(read_bounded(manifest_path))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"cannot read {manifest_path}: {error}. Write the bundle again: ptedge export") from None
    kept = [e for e in values.get("engines", []) if e.get("file") != record.file]
    values["engines"] = [*kept, record_to_json(record)]
    write_json(manifest_path, values)


def differences(record: EngineRecord, here: Platform, onnx_sha256: str) -> list[str]:
    """Why an engine cannot be used here, in words; empty when it can.

    Args:
        record: of the engine.
        here: this machine.
        onnx_sha256: of the bundle's model.
    """
    found = []
    if record.onnx_sha256 != onnx_sha256:
        found.append("it was built from another model.onnx")
    if record.tensorrt != here.tensorrt and not _version_compatible(record, here):
        found.append(f"it was built with {PRODUCTS[record.backend]} {record.tensorrt}, here is {here.tensorrt}")
    if record.backend == RTX:
        if here.compute_capability not in record.compute_capability.split(", "):
            built_for = f"it was built for compute capability {record.compute_capability}"
            found.append(f"{built_for}, here is {here.gpu} ({here.compute_capability})")
    elif record.compute_capability != here.compute_capability and not _hardware_compatible(record, here):
        found.append(
            f"it was built on {record.gpu} (compute capability {record.compute_capability}), "
            f"here is {here.gpu} ({here.compute_capability})"
        )
    return found


def engine_problems(folder: Path, record: EngineRecord, here: Platform, onnx_sha256: str) -> list[str]:
    """Why an engine of a bundle cannot be used here, in words; empty when it can.

    Args:
        folder: of the bundle.
        record: of the engine.
        here: this machine.
        onnx_sha256: of the bundle's model.
    """
    missing = [] if (folder / record.file).is_file() else ["the file is missing"]
    return [*differences(record, here, onnx_sha256), *missing]


def _version_compatible(record: EngineRecord, here: Platform) -> bool:
    """Built to run with other minor versions of the same major one, this one or later."""
    built, found = _numbers(record.tensorrt), _numbers(here.tensorrt)
    return "version_compatible" in record.flags and built[:1] == found[:1] and built <= found


def _hardware_compatible(record: EngineRecord, here: Platform) -> bool:
    if "hardware_ampere_plus" in record.flags:
        return _numbers(here.compute_capability) >= (8, 0)
    return False


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def choose_engine(
    folder: Path, records: Sequence[EngineRecord], here: Platform, onnx_sha256: str
) -> tuple[EngineRecord | None, str]:
    """The newest engine of a bundle that fits this machine.

    Args:
        folder: of the bundle.
        records: from its manifest, of one backend.
        here: this machine.
        onnx_sha256: of its model.

    Returns:
        The record, of two stages the first's, or ``None``; and in words why not, with the command that repairs it.
    """
    if not records:
        return None, f"the bundle holds no engine. Build one here: {build_command(folder)}"
    again = f"Build one here: {build_command(folder, records[0].backend)}"
    reasons = []
    for record in sorted(records, key=lambda r: r.built, reverse=True):
        if record.stage == "second":
            continue  # never without the first
        found = engine_problems(folder, record, here, onnx_sha256)
        if record.stage == "first":
            other = other_stage(record, records)
            found += ["there is none of the second stage"] if other is None else []
            found += [] if other is None else engine_problems(folder, other, here, onnx_sha256)
        if not found:
            return record, ""
        reasons.append(f"{record.file}: {', '.join(found)}")
    return None, f"no engine of the bundle fits ({'; '.join(reasons)}). {again}"


def build_command(folder: Path | str, backend: str = "tensorrt") -> str:
    """The command that builds an engine.

    Args:
        folder: of the bundle, or a word for it.
        backend: a key of ``PRODUCTS``.
    """
    return f"ptedge build {folder}" + (f" --backend {backend}" if backend != "tensorrt" else "")


def other_stage(record: EngineRecord, records: Sequence[EngineRecord]) -> EngineRecord | None:
    """The engine that one of a stage runs together with: of the other stage, built alike.

    Args:
        record: of a stage.
        records: among which to look.

    Returns:
        Its record; ``None`` where there is none, as for an engine of the whole graph.
    """
    for other in records:
        alike = same_build(dataclasses.replace(other, file=record.file, stage=record.stage), record)
        if alike and {record.stage, other.stage} == {"first", "second"}:
            return other
    return None


def read_engine(folder: Path, record: EngineRecord) -> bytes:
    """The engine's bytes, checked against its record.

    Raises:
        ArtifactError: missing, or changed.
    """
    path, again = folder / record.file, build_command(folder, record.backend)
    try:
        content = read_bounded(path, MOST_ENGINE_BYTES)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. Build it again: {again}") from None
    if hashlib.sha256(content).hexdigest() != record.sha256:
        raise ArtifactError(f"{path} does not match the manifest: changed or cut short. Build it again: {again}")
    return content


def same_build(record: EngineRecord, other: EngineRecord) -> bool:
    """Whether two records describe the same work: same model, machine and builder settings."""
    ignored = {"sha256": "", "built": "", "seconds": 0.0, "memory_mb": 0}
    return dataclasses.replace(record, **ignored) == dataclasses.replace(other, **ignored)  # type: ignore[arg-type]
