"""What ``ptedge benchmark`` was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptedge.backends.runner import BACKENDS, ORT_TENSORRT
from ptedge.config import require, require_one_of

EVERY = "all"  # every backend that works here
CHOICES = ("auto", EVERY, *(name for name in BACKENDS if name != "auto"), ORT_TENSORRT)


@dataclass(frozen=True)
class BenchOptions:
    """What the user chose.

    Attributes:
        backends: ``auto``, ``all`` or names of backends; each bundle is measured on each.
        seconds: to measure for, each bundle on each backend.
        warm_up: seconds before, each, that are not counted.
        rounds: turns of each.
        frames: image, folder or video; ``None`` takes a frame of noise.
        threads: CPU threads of the model.
        slots: calls under way at once.
        trust: files of public keys that bundles must be signed with; none checks their hashes alone.
    """

    backends: tuple[str, ...] = ("auto",)
    seconds: float = 10.0
    warm_up: float = 2.0
    rounds: int = 10
    frames: str | None = None
    threads: int | None = None
    slots: int = 1
    trust: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for name in self.backends:
            require_one_of("backend", name, CHOICES)
        require("seconds", self.seconds, 0, open_low=True)
        require("warm_up", self.warm_up, 0)
        require("rounds", self.rounds, 1)
        require("slots", self.slots, 1)
        if self.threads is not None:
            require("threads", self.threads, 1)
