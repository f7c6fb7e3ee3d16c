"""Bundles that differ, and deployments of them, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tiny_model import ANSWER, tiny_bundle, tiny_onnx

from ptedge.runtime.deployment.change import Promotion, promote
from ptedge.runtime.deployment.history import Entry, State, append, now
from ptedge.runtime.deployment.options import GateOptions
from ptedge.runtime.deployment.place import Deployment

QUICK = GateOptions(backend="cpu", threads=1, seconds=0)


def numbered_bundle(folder: Path, number: int, **changes: Any) -> Path:
    """A tiny bundle whose best score tells its number, 0 to 9."""
    answer = {**ANSWER, "scores": [0.9 + number / 100, 0.6]}
    return tiny_bundle(folder, tiny_onnx(answer), **changes).path


def deployed(folder: Path, count: int) -> Deployment:
    """A deployment ``folder/deployment`` of bundles 0, 1, ..., the last of which runs."""
    for number in range(count):
        bundle = numbered_bundle(folder / f"bundle{number}", number)
        assert promoted(bundle, folder / "deployment").promoted
    return Deployment(folder / "deployment")


def promoted(bundle: Path, to: Path, options: GateOptions = QUICK, **rest: Any) -> Promotion:
    """Promote with the quickest gate."""
    return promote(bundle, to, options, **rest)


def kept(deployment: Deployment) -> None:
    """Have the version that runs pass its probation."""

    def entry(state: State) -> Entry:
        return Entry(state.number + 1, "keep", str(state.version), str(state.version), now(), automatic=True)

    append(deployment.store, entry)


def frame(seed: int = 0) -> np.ndarray:
    """A picture of noise."""
    return np.random.default_rng(seed).integers(0, 256, (64, 96, 3), np.uint8)
