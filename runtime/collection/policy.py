"""What is collected, as options or a TOML file say it: ``[shares]``, ``[spacing]``, ``[quota]`` and three keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from ptedge.config import load_config, require


@dataclass(frozen=True)
class Shares:
    """How many frames each strategy picks, as a share of all frames; 0 switches it off.

    All but ``random`` pick a frame of which they say more than of all but this share of the frames so far. In a full
    folder each strategy holds its part in proportion to these numbers, and gives up its least informative frames.

    Attributes:
        random: by chance, so that the common case stays in sight.
        entropy: classes in doubt.
        sigma: sides in doubt.
        near_threshold: scores near ``threshold``.
        count_change: another number of objects than in the frames around.
        neighbours: other answers than in the frames around.
        drift: unlike the frames before, in scores, number of objects or light.
        missed: objects that the frames around have, and weak candidates that stay in place.
    """

    random: float = 0.02
    entropy: float = 0.1
    sigma: float = 0.1
    near_threshold: float = 0.0
    count_change: float = 0.0
    neighbours: float = 0.0
    drift: float = 0.0
    missed: float = 0.02

    def __post_init__(self) -> None:
        for name, value in self.by_name.items():
            require(name, value, 0, 1)

    @property
    def by_name(self) -> Mapping[str, float]:
        """Each strategy's share."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class Spacing:
    """How far kept frames are from one another.

    Attributes:
        frames: shortest distance of two kept frames of a source, in frames.
        seconds: shortest time between them, by the source's clock.
        duplicate_bits: frames whose 64-bit dHash differs from a recent one in at most so many bits are the same; -1
            turns this off.
    """

    frames: int = 5
    seconds: float = 0.0
    duplicate_bits: int = 4

    def __post_init__(self) -> None:
        require("frames", self.frames, 0)
        require("seconds", self.seconds, 0)
        require("duplicate_bits", self.duplicate_bits, -1, 64)


@dataclass(frozen=True)
class Quota:
    """How much is kept. A limit that is reached is no end: the least informative frames make way for better ones.

    Hours and days are the last 3,600 and 86,400 seconds by the machine's clock.

    Attributes:
        images: in the folder at most.
        bytes: of them at most.
        images_hour: collected in an hour at most; not set: any number.
        images_day: the same, in a day.
        bytes_hour: of the images collected in an hour at most.
        bytes_day: the same, in a day.
        free_share: share of the disk that collecting leaves free; at least 128 KiB and at most 1 GiB are left.
    """

    images: int = 5000
    bytes: int = 2_000_000_000
    images_hour: int | None = None
    images_day: int | None = None
    bytes_hour: int | None = None
    bytes_day: int | None = None
    free_share: float = 0.05

    def __post_init__(self) -> None:
        for name in ("images", "bytes", "images_hour", "images_day", "bytes_hour", "bytes_day"):
            if (value := getattr(self, name)) is not None:
                require(name, value, 1)
        require("free_share", self.free_share, 0, 1)


@dataclass(frozen=True)
class Policy:
    """Which frames are kept in a field folder.

    Attributes:
        shares: how many frames each strategy picks.
        spacing: how far kept frames are from one another.
        quota: how much is kept.
        threshold: score from which a detection counts as an object, for the strategies.
        triples: a kept frame brings the frame before and the frame after it.
        seed: of the random choice.
    """

    shares: Shares = field(default_factory=Shares)
    spacing: Spacing = field(default_factory=Spacing)
    quota: Quota = field(default_factory=Quota)
    threshold: float = 0.3
    triples: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require("threshold", self.threshold, 0, 1)


def read_policy(path: Path | None) -> Policy:
    """A policy from a TOML file; what the file does not say has its default.

    Args:
        path: the file; ``None`` for the defaults.

    Raises:
        ConfigError: unreadable, an unknown key, or a value out of range.
    """
    return load_config(Policy, path)
