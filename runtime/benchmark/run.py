"""Open what ``ptedge benchmark`` is asked to measure, measure it, and put the report together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import ArtifactError, PtedgeError
from ptedge.frames.source import open_frames
from ptedge.progress import tracked

from .machine import environment, reading
from .measure import MEASURED, Subject, measure, noise, subject_names
from .options import EVERY, BenchOptions
from .report import benchmark_report

MOST_FRAMES = 32


def run_benchmark(bundles: Sequence[Path], options: BenchOptions, log: Callable[[str], None]) -> dict[str, Any]:
    """Measure bundles on backends, in turns.

    Args:
        bundles: folders, ONNX files or engine files.
        options: of the user.
        log: progress.

    Returns:
        The report.

    Raises:
        InputError: no frame.
        ArtifactError: a broken bundle.
        BackendError: a backend that was named is not there; with ``all``, one bundle runs on none.
        MissingExtraError: a backend that was named is not installed.
    """
    images = [frame.image for frame in open_frames(options.frames, limit=MOST_FRAMES)] if options.frames else [noise()]
    skipped: list[dict[str, str]] = []
    opened: list[tuple[str, BundlePredictor, float]] = []
    try:
        for bundle in bundles:
            opened += _open(bundle, options, skipped, log)
        names = subject_names([place for place, _, _ in opened], [p.runner.backend for _, p, _ in opened])
        subjects = [
            Subject(name, predictor, images, options.slots, took)
            for name, (_, predictor, took) in zip(names, opened, strict=True)
        ]
        total = len(subjects) * (options.seconds + options.warm_up)
        log(f"measuring {', '.join(names)}: about {total:.0f} s")
        settings = {
            "seconds": options.seconds,
            "warm_up": options.warm_up,
            "frames": {
                "source": options.frames or "noise",
                "count": len(images),
                "size": list(images[0].shape[:2]),
            },
        }
        around, readings = environment(options.threads), _measure(subjects, options)
        return benchmark_report(subjects, settings, around, readings, skipped)
    finally:
        for _, predictor, _ in opened:
            predictor.close()


def _open(
    bundle: Path, options: BenchOptions, skipped: list[dict[str, str]], log: Callable[[str], None]
) -> list[tuple[str, BundlePredictor, float]]:
    """(path, predictor, seconds it took to load) of a bundle on each backend; with ``all``, on those that work."""
    every, trust = EVERY in options.backends, Trust.read(options.trust)
    found: list[tuple[str, BundlePredictor, float]] = []
    problem: PtedgeError | None = None
    for backend in MEASURED if every else options.backends:
        start = time.perf_counter()
        try:
            predictor = BundlePredictor(bundle, backend, options.threads, options.slots, trust=trust)
        except PtedgeError as error:
            if not every or (isinstance(error, ArtifactError) and backend == "cpu"):
                _close(found)
                raise
            problem = error
            log(f"without {backend}: {error}")
            skipped.append({"bundle": str(bundle), "backend": backend, "why": str(error)})
            continue
        if not found:
            log(f"{bundle}: signature {predictor.signature}")
        found.append((str(bundle), predictor, time.perf_counter() - start))
    if not found and problem is not None:
        raise problem
    return found


def _measure(subjects: Sequence[Subject], options: BenchOptions) -> list[dict[str, Any]]:
    """Measure; what the machine told before the first round and after each."""
    began, readings = time.monotonic(), list[dict[str, Any]]()
    rounds = measure(
        subjects,
        options.seconds,
        options.warm_up,
        options.rounds,
        read=lambda: readings.append({"at": round(time.monotonic() - began, 2)} | reading()),
    )
    for _ in tracked(rounds, "measuring", "rounds", options.rounds):
        pass
    return readings


def _close(opened: Sequence[tuple[str, BundlePredictor, float]]) -> None:
    for _, predictor, _ in opened:
        predictor.close()
