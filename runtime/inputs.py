"""The sources of a run: opened, named, and what their kinds mean for the way they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from ptedge.errors import InputError, PtedgeError
from ptedge.files import shown_name
from ptedge.frames.address import is_live, mask_credentials
from ptedge.frames.source import FrameSource

from .counters import RunSource

LONGEST_NAME = 40
MOST_SOURCES = 32


def open_sources(specs: Sequence[str], open_source: Callable[[str], FrameSource]) -> list[RunSource]:
    """Open all sources that can be opened.

    Args:
        specs: what the user named, at least one.
        open_source: opens one.

    Returns:
        One entry each, in order. Of several, one that cannot be opened has no ``source`` but an ``error``.

    Raises:
        PtedgeError: not one can be opened, or they are very many.
    """
    if len(specs) > MOST_SOURCES:
        raise InputError(
            f"{len(specs)} sources are more than {MOST_SOURCES}. "
            "Put a pattern in quotes ('frames/*.jpg'), or name the folder"
        )
    sources, first = [], None
    for spec, name in zip(specs, name_sources(specs), strict=True):
        about = RunSource(name, shown_name(mask_credentials(spec)))
        try:
            about.source = open_source(spec)
            about.kind = about.source.kind
        except PtedgeError as error:
            first = first or error
            about.error, about.ended = str(error), True
        sources.append(about)
    if first is not None and all(about.source is None for about in sources):
        if len(sources) == 1:
            raise first
        raise InputError(f"none of the {len(sources)} sources can be opened; the first: {first}")
    return sources


def choose_realtime(sources: Sequence[RunSource], asked: bool | None) -> bool:
    """Whether frames are dropped to keep up: as asked, else when a source is live.

    Raises:
        InputError: asked for, but a source has no clock.
    """
    realtime = any(about.kind == "live" for about in sources) if asked is None else asked
    still = [about for about in sources if about.source is not None and not has_clock(about)]
    if realtime and still:
        raise InputError(
            f"--realtime needs a video or a live source; {still[0].shown} is a {still[0].kind} without a clock. "
            "--rate gives it one"
        )
    return realtime


def has_clock(about: RunSource) -> bool:
    """Whether frames of a source have a time to come at: a video, a camera, or images that got a rate."""
    return about.kind in ("video", "live") or (about.source is not None and about.source.rate is not None)


def name_sources(specs: Sequence[str]) -> list[str]:
    """A short name for each source, fit for a file name and unlike the others."""
    names: list[str] = []
    for spec in specs:
        name = _short(spec)
        number = 2
        while name in names:
            name, number = f"{_short(spec)}-{number}", number + 1
        names.append(name)
    return names


def _short(spec: str) -> str:
    if spec.isdecimal():
        return f"camera{spec}"
    if "://" in spec and is_live(spec):
        parts = urlsplit(mask_credentials(spec))
        text = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    else:
        text = Path(spec).stem or Path(spec).resolve().name
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII).strip("._")[:LONGEST_NAME] or "source"
