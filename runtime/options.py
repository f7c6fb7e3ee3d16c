"""What ``ptedge run`` was told, in groups that are passed by name; each refuses by itself what makes no sense."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ptedge.backends.runner import BACKENDS
from ptedge.config import require, require_one_of
from ptedge.errors import InputError

from .collection.policy import Policy
from .push_address import parse_push_address

SAVES = ("jsonl", "coco", "csv", "video", "images")
FLIPS = ("horizontal", "vertical", "both")
LOOPBACK = "127.0.0.1"
SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True)
class SourceOptions:
    """Which frames are taken, and how.

    Attributes:
        realtime: drop frames to keep up; ``None`` for live sources only.
        limit: frames of each source at most.
        start: frames of each source passed over at the beginning.
        stride: every so-many-th from there.
        rate: frames a second of each source at most.
        loop: begin files again at their end.
        flip: mirror; ``both`` turns by 180 degrees.
        strict: one failing source of several makes the exit status 1.
        source_auth: file of logins by host; ``None`` for what the environment says.
    """

    realtime: bool | None = None
    limit: int | None = None
    start: int = 0
    stride: int = 1
    rate: float | None = None
    loop: bool = False
    flip: Literal["horizontal", "vertical", "both"] | None = None
    strict: bool = False
    source_auth: Path | None = None

    def __post_init__(self) -> None:
        require("start", self.start, 0)
        require("stride", self.stride, 1)
        if self.limit is not None:
            require("limit", self.limit, 1)
        if self.rate is not None:
            require("rate", self.rate, 0, open_low=True)
        if self.flip is not None:
            require_one_of("flip", self.flip, FLIPS)


@dataclass(frozen=True)
class ModelOptions:
    """What runs the model.

    Attributes:
        backend: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``.
        threads: CPU threads; ``None`` for one a core.
        trust: files of public keys that the bundle must be signed with; none checks its hashes alone.
        quick_shrink: large frames become network input by :func:`ptedge.preprocess.shrink_quickly`.
        probation: seconds in which a new version of a deployment is compared with the one before; 0 for none.
        poll: seconds between two looks at a deployment; ``None`` for what suits a folder or a bucket.
        cache: folder for the copy of a deployment in a bucket; ``None`` for one below the user's cache.
    """

    backend: str = "auto"
    threads: int | None = None
    trust: tuple[Path, ...] = ()
    quick_shrink: bool = False
    probation: float = 600.0
    poll: float | None = None
    cache: Path | None = None

    def __post_init__(self) -> None:
        require_one_of("backend", self.backend, BACKENDS)
        require("probation", self.probation, 0)
        if self.poll is not None:
            require("poll", self.poll, 0, open_low=True)
        if self.threads is not None:
            require("threads", self.threads, 1)


@dataclass(frozen=True)
class OutputOptions:
    """Files that are written.

    Attributes:
        folder: for results; ``None`` for one of its own.
        save: of ``jsonl``, ``coco``, ``csv``, ``video``, ``images``; none of them writes nothing; ``None`` for the
            default of the kind of source.
        append: go on with what an earlier run wrote into the folder.
        rotate_bytes: size from which files of lines get a number and are begun anew; ``None`` for never.
        min_score: detections below are left out.
        draw_score: detections below are left out of pictures.
        mask: file of places that no picture may show, see :func:`ptedge.runtime.masks.read_masks`.
    """

    folder: Path | None = None
    save: tuple[str, ...] | None = None
    append: bool = False
    rotate_bytes: int | None = None
    min_score: float = 0.0
    draw_score: float = 0.3
    mask: Path | None = None

    def __post_init__(self) -> None:
        for name in self.save or ():
            require_one_of("save", name, SAVES)
        if self.append and self.folder is None:
            raise InputError("--append goes on in a folder that you name: give --out")
        if self.rotate_bytes is not None:
            require("rotate_bytes", self.rotate_bytes, 1)
        require("min_score", self.min_score, 0, 1)
        require("draw_score", self.draw_score, 0, 1)


@dataclass(frozen=True)
class CollectOptions:
    """Collecting frames worth adapting to.

    Attributes:
        folder: field folder, or a new one.
        policy: which frames.
    """

    folder: Path
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class PushOptions:
    """Sending results to another machine.

    Attributes:
        to: address, see :func:`ptedge.runtime.push_address.parse_push_address`.
        token: for HTTP; ``None`` for none.
    """

    to: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse another kind of address, and a token that no header takes.

        Raises:
            InputError: with what is wrong and what is allowed.
        """
        to = parse_push_address(self.to)
        if self.token is not None and to.topic:
            raise InputError("the token for --push is for HTTP; MQTT takes a user and a password (PTEDGE_PUSH_AUTH)")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise InputError(
                "the token for --push has characters that no HTTP header takes. Look for a line break in it"
            )


@dataclass(frozen=True)
class ServeOptions:
    """The live page.

    Attributes:
        host: address to listen on.
        port: 0 for any free one.
        token: what visitors must show; ``None`` for nothing.
    """

    host: str = LOOPBACK
    port: int = 0
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse what would let anyone look.

        Raises:
            InputError: a short token, or an address that others can reach without a token.
        """
        require("port", self.port, 0, 65535)
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise InputError(
                f"the token for --serve has {len(self.token)} characters; it must have at least {SHORTEST_TOKEN}"
            )
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"--serve {self.shown_host}:{self.port} can be reached from other machines, so it needs a token: set "
                f"PTEDGE_SERVE_TOKEN to {SHORTEST_TOKEN} characters or more, or give a port alone"
            )

    @property
    def shown_host(self) -> str:
        """The host as it stands in an address: IPv6 in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @classmethod
    def parse(cls, text: str, token: str | None) -> ServeOptions:
        """Where to listen.

        Args:
            text: ``[HOST:]PORT``; an IPv6 host stands in brackets. Without a host: this machine alone.
            token: what visitors must show; ``None`` for nothing.

        Raises:
            InputError: not of that form, a short token, or an address that others can reach without a token.
        """
        host, _, port = text.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise InputError(f"--serve {text}: give a port, as 8080, or an address and a port, as 0.0.0.0:8080")
        return cls(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port), token)


@dataclass(frozen=True)
class DriftOptions:
    """Watching for drift.

    Attributes:
        seconds_between: mean time between two false alarms, at least, of all sources together.
    """

    seconds_between: float = 7 * 86400.0

    def __post_init__(self) -> None:
        require("seconds_between", self.seconds_between, 1)


@dataclass(frozen=True)
class RunOptions:
    """Everything ``ptedge run`` was told besides bundle and frames; see its ``--help``.

    Attributes:
        source: which frames.
        model: what runs it.
        output: files.
        collect: field folder, or ``None``.
        push: another machine, or ``None``.
        serve: live page, or ``None``.
        drift: against the place that the model was made for.
    """

    source: SourceOptions = field(default_factory=SourceOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    output: OutputOptions = field(default_factory=OutputOptions)
    collect: CollectOptions | None = None
    push: PushOptions | None = None
    serve: ServeOptions | None = None
    drift: DriftOptions = field(default_factory=DriftOptions)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
