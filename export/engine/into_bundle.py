"""Engines into a bundle's folder: each graph of the plan through the builder, and what is known of it afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.engine_file import EngineRecord
from ptedge.artifacts.trust import SUFFIX
from ptedge.files import make_output_folder, sha256_file

from ..stages import cut_stages
from .process import run_worker

Tell = Callable[[str], None]


def build_into(
    bundle: Bundle, planned: Sequence[EngineRecord], job: Mapping[str, Any], tell: Tell
) -> list[EngineRecord]:
    """Build engines and put them into the bundle's folder, all or none.

    Args:
        bundle: opened bundle folder.
        planned: the record of the whole graph, or of its two stages; each says which.
        job: what the worker is told beside file names.
        tell: takes lines of progress.

    Returns:
        The records with what is known only now.

    Raises:
        GraphRefusedError: TensorRT does not take a graph.
        BackendError: the builder was killed, or something else is not as it should be.
        ArtifactError: the graph cannot be cut, since an earlier version exported it.
    """
    make_output_folder(bundle.path)
    temporary = {record.file: bundle.path / f".{record.file}.{os.getpid()}.tmp" for record in planned}
    built = []
    try:
        with _graphs(bundle, planned) as graphs:
            for record in planned:
                if record.stage != "whole":
                    tell(f"the {record.stage} stage")
                model, digest = graphs[record.stage]
                files = {"model": str(model), "model_sha256": digest, "out": str(temporary[record.file])}
                files["precision"] = record.precision
                built.append(_finished(record, temporary[record.file], run_worker({**job, **files}, tell)))
        for record in built:
            (bundle.path / (record.file + SUFFIX)).unlink(missing_ok=True)  # of the engine before
            os.replace(temporary[record.file], bundle.path / record.file)
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
    return built


@contextlib.contextmanager
def _graphs(bundle: Bundle, planned: Sequence[EngineRecord]) -> Iterator[dict[str, tuple[Path, str]]]:
    """Stage -> file of its graph and sha256; stages of one graph are cut out of it for as long as this lasts."""
    if all(record.stage == "whole" for record in planned):
        yield {"whole": (bundle.model_path, bundle.model_hash)}
    elif bundle.manifest.second_stage is not None:
        yield {
            "first": (bundle.model_path, bundle.model_hash),
            "second": (bundle.second_path, bundle.manifest.second_stage),
        }
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = {}
            for name, content in cut_stages(bundle.read_model())._asdict().items():
                path = Path(folder) / f"{name}_stage.onnx"
                path.write_bytes(content)
                found[name] = path, hashlib.sha256(content).hexdigest()
            yield found


def _finished(planned: EngineRecord, engine: Path, done: Mapping[str, Any]) -> EngineRecord:
    return replace(
        planned,
        sha256=sha256_file(engine),
        built=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=float(done["seconds"]),
        memory_mb=int(done["memory_mb"]),
    )
