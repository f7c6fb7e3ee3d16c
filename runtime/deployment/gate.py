"""The gate before a deployment: what is looked at, in which order."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import InputError, PtedgeError
from ptedge.frames.source import open_frames

from .answers import check_answers
from .check import GateCheck
from .compare import check_champion, check_labels
from .options import GateOptions
from .speed import check_speed

LEAST_FOUND_AGAIN = 0.9  # share of what the model before the adaptation found again; the choice of model.pt allows it
NO_CHAMPION = "nothing runs there yet"


def run_gate(
    bundle: Bundle, champion: Path | None, options: GateOptions, log: Callable[[str], None]
) -> list[GateCheck]:
    """Look at a bundle as closely as this machine allows.

    Args:
        bundle: to be promoted, opened.
        champion: folder of the version that runs; ``None`` for none.
        options: how.
        log: progress.

    Returns:
        The checks; those that do not hold and are in ``options.accept`` are marked so.

    Raises:
        ArtifactError: the bundle is broken.
        BackendError: the backend asked for is not there.
        InputError: no such frames.
    """
    frames = spread(options.frames, options.limit) if options.frames is not None else []
    trust = Trust.read(options.trust)
    checks = [check_signature(bundle)]
    with contextlib.ExitStack() as opened:

        def load(path: Path, backend: str) -> BundlePredictor:
            predictor = BundlePredictor(path, backend, options.threads, trust=trust)
            return opened.enter_context(contextlib.closing(predictor))

        challenger = load(bundle.path, options.backend)
        log(f"gate: on {challenger.runner.backend} ({challenger.runner.reason})")
        running, problem = None, NO_CHAMPION
        if champion is not None:
            try:
                running = load(champion, options.backend)
            except PtedgeError as error:  # it must not keep out the version that would replace it
                problem = f"the running version cannot be loaded: {error}"
                log(problem)
        checks.append(check_classes(bundle.manifest, running.manifest if running is not None else None, problem))
        reference = load(bundle.path, "cpu") if challenger.runner.backend != "cpu" else None
        checks.append(check_answers(challenger, reference, frames))
        if checks[-1].passed:
            checks.append(check_speed(challenger, running, frames, options))
            checks += compare(challenger, running, frames, options, problem)
    checks.append(check_adaptation(bundle.manifest))
    checks.append(check_estimate(bundle.manifest, running.manifest if running is not None else None, problem))
    return [dataclasses.replace(c, accepted=not c.passed and c.name in options.accept) for c in checks]


def compare(
    challenger: BundlePredictor,
    champion: BundlePredictor | None,
    frames: Sequence[NDArray[np.uint8]],
    options: GateOptions,
    problem: str,
) -> list[GateCheck]:
    """Champion against challenger, without labels and with them.

    Args:
        challenger: to be promoted.
        champion: that runs, or ``None``, and
        problem: why it is.
        frames: of the place, may be none.
        options: ``labels`` and ``max_loss``.
    """
    checks = []
    if champion is not None and champion.class_names != challenger.class_names:
        champion, problem = None, "it has other classes"
    if champion is None or not frames:
        why = problem if champion is None else "no --frames"
        checks.append(GateCheck("champion", True, f"not compared: {why}", judged=False))
    else:
        checks.append(check_champion(champion, challenger, frames, options.max_loss))
    if options.labels is not None:
        checks.append(check_labels(champion, challenger, options.labels, options.max_loss))
    return checks


def check_signature(bundle: Bundle) -> GateCheck:
    """Opening with ``trust`` has refused what nobody signed; this says who did."""
    return GateCheck("signature", True, bundle.signature, judged=bundle.trust is not None)


def check_classes(challenger: Manifest, champion: Manifest | None, problem: str) -> GateCheck:
    """Whoever reads the results must find the classes as they were.

    Args:
        challenger: to be promoted.
        champion: that runs, or ``None``, and
        problem: why it is.
    """
    if champion is None:
        return GateCheck("classes", True, f"not compared: {problem}", judged=False)
    new, old = challenger.class_names, champion.class_names
    if new == old:
        return GateCheck("classes", True, ", ".join(new[:6]) + (f" and {len(new) - 6} more" if len(new) > 6 else ""))
    return GateCheck("classes", False, f"{list(new[:10])}, but the running version has {list(old[:10])}")


def check_adaptation(challenger: Manifest) -> GateCheck:
    """What watched over the adaptation: whether it came to its end, and ended no worse by its own monitors.

    Args:
        challenger: to be promoted.
    """
    record = challenger.adaptation
    if record is None:
        return GateCheck("adaptation", True, "the bundle has no record of one", judged=False)
    figures = {
        "steps": float(record.steps),
        "chosen": float(record.chosen),
        "found_again": record.found_again,
        "found_again_before": record.found_again_before,
        "trips": float(len(record.trips)),
        "without_pseudo_boxes": float(record.without_pseudo_boxes),
    }
    least = LEAST_FOUND_AGAIN * record.found_again_before
    text = f"{record.describe()} (allowed: {least:.2f} or more, and no end by a guard)"
    return GateCheck("adaptation", record.found_again >= least and not record.stopped, text, figures=figures)


def check_estimate(challenger: Manifest, champion: Manifest | None, problem: str) -> GateCheck:
    """What the adaptation itself thought of its model, each on the frames it was adapted to: an alarm, no measure.

    Args:
        challenger: to be promoted.
        champion: that runs, or ``None``, and
        problem: why it is.
    """
    new = challenger.estimate
    if new is None:
        return GateCheck("estimate", True, "its adaptation made no estimate without labels", judged=False)
    text = new.describe()
    figures = {"ap50": new.ap50, "ap50_error": new.ap50_error}
    old = champion.estimate if champion is not None else None
    if old is None:
        why = problem if champion is None else "the running version has no estimate"
        return GateCheck("estimate", True, f"{text}; not compared: {why}", judged=False, figures=figures)
    limit = 2 * float(np.hypot(new.ap50_error, old.ap50_error))
    text += f"; the running version about {old.ap50:.2f} (may be {limit:.2f} less, two standard errors)"
    figures |= {"champion_ap50": old.ap50, "allowed_loss": limit}
    return GateCheck("estimate", new.ap50 >= old.ap50 - limit, text, figures=figures)


def spread(spec: str, limit: int) -> list[NDArray[np.uint8]]:
    """Pictures at equal distances over a source of any length.

    Args:
        spec: image, folder, list, video or field folder.
        limit: at most so many.

    Returns:
        Each [height, width, 3] uint8 RGB. Whenever twice as many as wanted are held, every other one is dropped, so
        memory does not grow with the source.

    Raises:
        InputError: no frames there.
    """
    held: list[NDArray[np.uint8]] = []
    step = 1
    with contextlib.closing(open_frames(spec, live=False)) as source:
        for i, frame in enumerate(source):
            if i % step:
                continue
            held.append(frame.image)
            if len(held) == 2 * limit:
                held, step = held[::2], 2 * step
    if not held:
        raise InputError(f"{spec} holds no frames. Give an image, folder, list, video or field folder")
    rows: Sequence[int] = np.linspace(0, len(held) - 1, min(limit, len(held))).round().astype(int).tolist()
    return [held[row] for row in rows]
