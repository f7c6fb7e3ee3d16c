"""What can run a bundle here: ONNX Runtime on the CPU and on CUDA, and each TensorRT engine; or why not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.engine_file import PRODUCTS, RTX
from ptedge.backends.choose import open_runner
from ptedge.backends.runner import Runner
from ptedge.errors import BackendError, PtedgeError

BACKENDS = ("cpu", "cuda", *PRODUCTS)


@dataclass(frozen=True)
class TriedBackend:
    """One way to run a bundle, which was tried.

    Attributes:
        name: for the report.
        backend: one of ``BACKENDS``.
        runner: ready to run; ``None`` when it cannot.
        reason: why it cannot; empty when it can.
    """

    name: str
    backend: str
    runner: Runner | None
    reason: str = ""


def try_backends(bundle: Bundle, wanted: Collection[str] | None) -> Iterator[TriedBackend]:
    """All ways to run a bundle, the CPU first; each runner is closed before the next is opened.

    Args:
        bundle: opened bundle.
        wanted: backends to open; ``None`` opens what is there.

    Raises:
        BackendError: one that is in ``wanted`` is not there; the message says why.
    """
    for backend in BACKENDS if wanted is None else [b for b in BACKENDS if b in wanted]:
        engines: list[str | None] = [None]
        if backend in PRODUCTS:
            records = [record for record in bundle.manifest.engines if record.backend == backend]
            if not records and backend == RTX and wanted is None:
                continue  # few have it: nothing to tell of its absence
            engines = [record.file for record in records if record.stage != "second"] or [None]
        for engine in engines:
            name = f"{backend} {engine or ''}".rstrip() if backend in PRODUCTS else f"onnxruntime {backend}"
            try:
                runner = open_runner(bundle, backend, engine=engine)
            except PtedgeError as error:
                if wanted is not None:
                    raise BackendError(f"{backend} was asked for: {error}") from error
                yield TriedBackend(name, backend, None, str(error))
                continue
            try:
                yield TriedBackend(name, backend, runner)
            finally:
                runner.close()
