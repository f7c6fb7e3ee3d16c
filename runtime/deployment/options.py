"""What ``ptedge promote`` was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptedge.backends.runner import BACKENDS
from ptedge.config import require, require_one_of

from .check import NAMES


@dataclass(frozen=True)
class GateOptions:
    """How a bundle is looked at before it is let through.

    Attributes:
        frames: of the place it will run at; ``None`` for made pictures alone.
        limit: frames at most, spread over what there is.
        backend: that will run it here.
        threads: CPU threads of the model; ``None`` for one a core.
        trust: files of public keys that it must be signed with; none checks its hashes alone.
        seconds: of measuring, of each of the two bundles; 0 measures nothing.
        max_ms: milliseconds that nine of ten frames may take at most, from picture to detections; ``None`` for any.
        max_ratio: how many times as long as the running version it may take.
        labels: labelled DATA of the place; ``None`` for none.
        max_loss: of AP50, and of agreement where there are no labels, that the new version may lose, 0 to 1.
        accept: names of checks that may fail.
    """

    frames: str | None = None
    limit: int = 64
    backend: str = "auto"
    threads: int | None = None
    trust: tuple[Path, ...] = ()
    seconds: float = 5.0
    max_ms: float | None = None
    max_ratio: float = 1.25
    labels: Path | None = None
    max_loss: float = 0.05
    accept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require("limit", self.limit, 1)
        require_one_of("backend", self.backend, BACKENDS)
        require("seconds", self.seconds, 0)
        require("max_loss", self.max_loss, 0, 1)
        require("max_ratio", self.max_ratio, 0, open_low=True)
        if self.max_ms is not None:
            require("max_ms", self.max_ms, 0, open_low=True)
        if self.threads is not None:
            require("threads", self.threads, 1)
        for name in self.accept:
            require_one_of("accept", name, NAMES)
