"""Boxes of another detector brought to the target's frames: by file name, each frame's own or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ptedge.data.parsing.values import shown
from ptedge.errors import InputError
from ptedge.frames.images import is_image_name
from ptedge.frames.source import FrameIndex

from ..losses.merge import MergeRule
from .foreign_file import NO_BOXES, FoundBoxes, Key, read_foreign


@dataclass(frozen=True)
class ForeignFrames:
    """A file of another detector's boxes, by frame of the target.

    Attributes:
        path: of the file.
        found: of each frame; no boxes for a frame that the file does not name.
        matched: frames that it names.
        unused: images that it names and the frames lack.
        remarks: what was left out or taken for granted.
    """

    path: Path
    found: tuple[FoundBoxes, ...]
    matched: int
    unused: int
    remarks: tuple[str, ...] = ()

    @property
    def num_boxes(self) -> int:
        """In all frames."""
        return sum(len(found) for found in self.found)

    def describe(self) -> str:
        """One line about it, with all counts."""
        text = f"boxes of another detector {self.path}: {self.num_boxes} in {self.matched} of {len(self.found)} frames"
        if self.unused:
            text += f"; {self.unused} of its images are no frame of the target"
        return "; ".join([text, *self.remarks])


def open_foreign(path: Path, frames: FrameIndex, class_names: Sequence[str], rule: MergeRule) -> ForeignFrames:
    """Read boxes of another detector and find the frames that they are of.

    Args:
        path: as :func:`~ptedge.training.batches.foreign_file.read_foreign`.
        frames: of the target.
        class_names: of the detector to adapt.
        rule: class map, and where a list's images are named.

    Raises:
        InputError: unreadable; a name that fits several frames, several names that fit one; boxes in pixels of another
            size of the picture; or not one frame is named.
    """
    file = read_foreign(path, class_names, rule.class_map, Path(rule.images) if rule.images else None)
    places = _Places(frames)
    found: dict[int, tuple[int, Key]] = {}
    for key in file.images:
        if (place := places.find(key, path)) is None:
            continue
        i, common = place
        before, other = found.get(i, (0, ""))
        if before == common:
            raise InputError(f"{path}: {shown(other)} and {shown(key)} are both the frame {frames.name(i)}. Leave one")
        if before < common:
            found[i] = common, key
    for i, (_, key) in found.items():
        _check_size(file.images[key], frames, i, path)
    if not found:
        first = shown(next(iter(file.images)))
        raise InputError(
            f"{path}: none of its {len(file.images)} images is a frame of {frames.spec}; the first is {first}, the "
            f"first frame {frames.name(0)}. Frames are found by file name: give a COCO document with images, or a list "
            f"whose image_id or file_name is the name, or name the document of its images with teacher_boxes.images"
        )
    remarks = (*(f"{count} boxes left out: {reason}" for reason, count in file.dropped.items()), *file.notes)
    of_frames = tuple(file.images[found[i][1]] if i in found else NO_BOXES for i in range(len(frames)))
    return ForeignFrames(path, of_frames, len(found), len(file.images) - len(found), remarks)


class _Places:
    """Frames by the names under which a file may speak of them."""

    def __init__(self, frames: FrameIndex) -> None:
        self.frames = frames
        self.parts = [_parts(frames.name(i)) for i in range(len(frames))]
        self.by_name: dict[str, list[int]] = defaultdict(list)
        self.by_stem: dict[str, list[int]] = defaultdict(list)
        self.by_number: dict[int, list[int]] = defaultdict(list)
        for i, parts in enumerate(self.parts):
            stem = _stem(parts[-1])
            self.by_name[parts[-1]].append(i)
            self.by_stem[stem].append(i)
            if stem.isascii() and stem.isdecimal():
                self.by_number[int(stem)].append(i)

    def find(self, key: Key, path: Path) -> tuple[int, int] | None:
        """The frame of this name and in how many parts of its path it agrees, from the end; ``None`` for none.

        Raises:
            InputError: there are several.
        """
        parts = ("",) if isinstance(key, int) else _parts(key)
        if isinstance(key, int):
            near = self.by_number.get(key, [])
        else:
            near = self.by_name.get(parts[-1]) or self.by_stem.get(_stem(parts[-1]), [])
        # cam1/7.jpg is rather that of a folder cam1 than that of cam2, wherever these folders lie
        common = [_common_tail(self.parts[i], parts) for i in near]
        near = [i for i, count in zip(near, common, strict=True) if count == max(common)]
        if len(near) > 1:
            names = " and ".join(self.frames.name(i) for i in near[:2])
            raise InputError(f"{path}: the image {shown(key)} may be {names}. Name images with their folders")
        return (near[0], max(common)) if near else None


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name.replace("\\", "/")).parts or ("",)


def _stem(name: str) -> str:
    return Path(name).stem if is_image_name(Path(name)) else name


def _common_tail(one: Sequence[str], other: Sequence[str]) -> int:
    """Parts in which two names agree, from their ends; the last ones do or differ in their suffix only."""
    count = 1
    while count < min(len(one), len(other)) and one[-1 - count] == other[-1 - count]:
        count += 1
    return count


def _check_size(found: FoundBoxes, frames: FrameIndex, i: int, path: Path) -> None:
    """Refuse boxes in pixels of another size of the picture.

    Raises:
        InputError: the file says so, or the middle of a box is outside the frame.
    """
    try:
        width, height = frames.size(i)
    except InputError:
        return  # said when its turn comes
    if found.size is not None and found.size != (width, height):
        raise InputError(
            f"{path}: its boxes of {frames.name(i)} are for {found.size[0]} x {found.size[1]} pixels, and the frame "
            f"has {width} x {height}. Run the other detector on these frames"
        )
    middle = 0.5 * (found.boxes[:, :2] + found.boxes[:, 2:])
    if len(middle) and ((middle < 0) | (middle > (width, height))).any():
        raise InputError(
            f"{path}: a box of {frames.name(i)} lies outside its {width} x {height} pixels. Boxes are x, y, width, "
            f"height in pixels of the frame"
        )
