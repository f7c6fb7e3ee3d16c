"""Frames in any order, for training: by number instead of one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click
import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import InputError
from ptedge.frames.files import find_files
from ptedge.frames.images import decode_image, image_size, printable, read_image
from ptedge.frames.video_file import open_capture, read_capture
from ptedge.progress import tracked
from ptedge.shards.index import is_site
from ptedge.shards.reading import StoredFrame, stored_frames

_VIDEO_QUALITY = 95  # JPEG quality of kept video frames: no visible loss, a tenth of the memory of raw pixels


Entry = Path | StoredFrame | tuple[str, bytes]


class FrameIndex:
    """Unlabelled frames by number, for training: image files and frames of a store are read when asked, video frames
    are kept as JPEG.

    Args:
        spec: what the user named.
        entries: image files, frames of a store, or encoded frames with their names.
        left_out: (place, reason) of what lies there and is not taken.
    """

    def __init__(self, spec: str, entries: Sequence[Entry], left_out: Sequence[tuple[str, str]] = ()) -> None:
        self.spec = spec
        self.left_out = tuple(left_out)
        self._entries = tuple(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def name(self, i: int) -> str:
        """Path of the image file, its place in the store, or ``video#000123`` with the number of the frame."""
        entry = self._entries[i]
        if isinstance(entry, StoredFrame):
            return printable(entry.name)
        return printable(entry) if isinstance(entry, Path) else entry[0]

    def path(self, i: int) -> Path | None:
        """The image file; ``None`` for a frame of a video or a store."""
        entry = self._entries[i]
        return entry if isinstance(entry, Path) else None

    def digest(self, i: int) -> str | None:
        """The sha256 of the encoded image where it is known without reading, as of a store; ``None`` elsewhere."""
        entry = self._entries[i]
        return entry.entry.key if isinstance(entry, StoredFrame) else None

    def size(self, i: int) -> tuple[int, int]:
        """Width and height in pixels as :meth:`read` gives them; of an image file only the header is read, of a frame
        in a store its index.

        Raises:
            InputError: missing, or no image.
        """
        entry = self._entries[i]
        if isinstance(entry, Path):
            return image_size(entry)
        if isinstance(entry, StoredFrame) and entry.entry.width and entry.entry.height:
            return entry.entry.width, entry.entry.height
        height, width = self.read(i).shape[:2]
        return width, height

    def without(self, numbers: Collection[int]) -> FrameIndex:
        """The same frames but these, in order."""
        kept = [entry for i, entry in enumerate(self._entries) if i not in numbers]
        return FrameIndex(self.spec, kept, self.left_out)

    def spaced(self, most: int) -> Iterator[NDArray[np.uint8]]:
        """Evenly spaced frames in order, at most so many; those that cannot be read are named on stderr.

        Args:
            most: at least 1.
        """
        chosen = np.unique(np.linspace(0, len(self) - 1, min(most, len(self))).round().astype(int))
        for i in tracked(chosen.tolist(), "looking at frames", "frames"):
            try:
                image = self.read(i)
            except InputError as error:
                click.echo(f"skipped: {error}", err=True)
                continue
            yield image

    def read(self, i: int) -> NDArray[np.uint8]:
        """Decode one frame.

        Returns:
            [H, W, 3] uint8 RGB.

        Raises:
            InputError: the file is missing or corrupt.
            StoreError: the store does not give it.
        """
        entry = self._entries[i]
        if isinstance(entry, StoredFrame):
            return decode_image(entry.read(), self.name(i))
        return read_image(entry) if isinstance(entry, Path) else decode_image(entry[1], entry[0])


def index_frames(spec: str | Path, max_video_frames: int = 2000) -> FrameIndex:
    """Make frames readable in any order.

    A video is decoded once, in order, because seeking is slow and wrong in many containers; evenly spaced frames of it
    are kept in memory as JPEG of quality 95 (about 0.2 MB each at 1280 x 720). Videos in a folder or pattern are taken
    as well, each for its share of the frames.

    Args:
        spec: as :func:`ptedge.frames.source.open_frames`, live sources excepted; also a store that frames were pushed
            to, ``s3://bucket/site`` or a folder (docs/stores.md).
        max_video_frames: at most so many frames of videos, in all.

    Raises:
        InputError: missing, empty, unreadable, or a live source.
        StoreError: the store cannot be reached, or refuses.
    """
    text = str(spec)
    if is_site(text):
        return FrameIndex(text, stored_frames(text))
    if max_video_frames < 1:
        raise InputError(f"max_video_frames is {max_video_frames}; it must be at least 1")
    found = find_files(text, live=False, videos=True)
    if found.kind == "video":
        return FrameIndex(text, _encoded_frames(text, max_video_frames), found.left_out)
    filmed: list[Entry] = []
    left_out = list(found.left_out)
    for number, video in enumerate(tracked(found.videos, "reading videos", "videos")):
        share = (max_video_frames - len(filmed)) // (len(found.videos) - number)
        try:
            filmed += _encoded_frames(str(video), max(1, share))
        except InputError as error:
            left_out.append((str(video), str(error)))
    if not found.files and not filmed:
        raise InputError(left_out[-1][1])
    return FrameIndex(text, [*found.files, *filmed], left_out)


def _encoded_frames(spec: str, most: int) -> list[tuple[str, bytes]]:
    """Evenly spaced frames as JPEG, whether or not the container's frame count is true."""
    with open_capture(spec) as capture:
        stride = max(1, (capture.count or 0) // most)
    kept: list[tuple[str, bytes]] = []
    step = 1  # of the frames read, every so-many-th is kept
    for number, (index, _, image) in enumerate(read_capture(spec, 0, stride, [])):
        if number % step:
            continue
        bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
        _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _VIDEO_QUALITY])
        kept.append((f"{printable(spec)}#{index:06d}", data.tobytes()))
        if len(kept) >= 2 * most:  # the container claimed too few frames: thin out and go on
            kept, step = kept[::2], step * 2
    chosen = np.linspace(0, len(kept) - 1, min(most, len(kept))).round().astype(int)
    return [kept[i] for i in chosen]
