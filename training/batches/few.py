"""A handful of labelled frames of the target: how they are learnt from, and which of the unlabelled ones they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ptedge.config import require, require_one_of
from ptedge.data.dataset import Dataset, Sample
from ptedge.errors import InputError
from ptedge.files import sha256_file
from ptedge.frames.images import image_size
from ptedge.frames.source import FrameIndex

from .augment import AugmentConfig
from .views import SourceViews

VIEWS = ("still", "weak", "colour", "strong")
SAME_SHAPE = 0.02  # width / height of two cameras' frames differ by more than this share


@dataclass(frozen=True)
class LabelsConfig:
    """Learning from the labelled target frames of ``--labels``; without them nothing here counts.

    Attributes:
        batch: labelled frames a step, or a part of one, in each process; they come again and again.
        view: how they are shown. ``still``: as they are; ``weak``: half of them mirrored; ``colour``: mirrored and in
            other colours, boxes where they were; ``strong``: as source images are, zoom included. A mirrored frame
            teaches the labels' habits mirrored too, so what they do on the left side only is learnt from ``still``
            alone.
        weight: factor on the four losses of labelled frames; at 0 they teach nothing and tell the offset alone.
        box_weight: further factor on the two of boxes.
        pseudo_box_weight: factor on the box losses of pseudo boxes beside labels: below 1, the labels say where an
            object ends, and pseudo boxes which objects there are.
        move_pseudo: pseudo boxes are moved by the offset that the sides of the teacher's boxes share.
        offset_every: steps between measurements of that offset.
        calibrate: checkpoints are calibrated by the offset of their teacher: what they detect is moved by it, as by
            ``ptedge calibrate``, which also takes it off (``--undo``).
    """

    batch: int = 4
    view: str = "strong"
    weight: float = 1.0
    box_weight: float = 1.0
    pseudo_box_weight: float = 1.0
    move_pseudo: bool = True
    offset_every: int = 20
    calibrate: bool = True

    def __post_init__(self) -> None:
        require("labels.batch", self.batch, 1)
        require_one_of("labels.view", self.view, VIEWS)
        require("labels.weight", self.weight, 0)
        require("labels.box_weight", self.box_weight, 0)
        require("labels.pseudo_box_weight", self.pseudo_box_weight, 0)
        require("labels.offset_every", self.offset_every, 1)


def few_views(dataset: Dataset, input_size: tuple[int, int], augment: AugmentConfig, view: str) -> SourceViews:
    """Labelled frames as training entries.

    Args:
        dataset: they.
        input_size: (height, width) in pixels.
        augment: the strong view.
        view: one of :data:`VIEWS`.
    """
    shown = {"colour": replace(augment, zoom=(1.0, 1.0)), "strong": augment}
    return SourceViews(dataset, input_size, shown.get(view), mirror=view != "still")


def set_labelled_apart(few: Dataset, frames: FrameIndex, source: Dataset | None) -> tuple[FrameIndex, int]:
    """Take labelled frames out of the unlabelled ones: with its labels a frame counts once.

    Args:
        few: labelled frames of the target.
        frames: of the target.
        source: labelled images of the source, if any.

    Returns:
        The frames that are left, and how many of ``few`` are among those taken out.

    Raises:
        InputError: images of the source, or of a shape that no frame of the target has; or no frame is left.
    """
    paths = [sample.path for sample in few.samples]
    if source is not None:
        images = FrameIndex(str(source.root), [sample.path for sample in source.samples])
        if shared := same_frames(paths, images):
            raise InputError(
                f"{few.root}: {len(shared)} of its {len(few)} images are source images too ({source.root}). Give "
                f"labelled frames of the target, or leave out --labels"
            )
    found = same_frames(paths, frames)
    if len(found) == len(frames):
        raise InputError(
            f"every frame of {frames.spec} is labelled in {few.root}, so there is none to learn from without labels. "
            f"Give more frames, or train on these with ptedge train"
        )
    own = set(found.values())
    refuse_other_cameras([sample for sample in few.samples if sample.path not in own], frames, few.root)
    return frames.without(found), len(own)


def same_frames(paths: Iterable[Path], frames: FrameIndex) -> dict[int, Path]:
    """Which frames are among some image files, by path or by content.

    Args:
        paths: image files.
        frames: of the target; those of a video are never found, as no file of theirs exists, those of a store by
            their content.

    Returns:
        Number of the frame -> the image file that it is.
    """
    known = {os.path.realpath(path): path for path in paths}
    sizes = {_size(path) for path in known.values()}  # a file of another size need not be read to know that it differs
    contents = {_content(path): path for path in known.values()}
    found: dict[int, Path] = {}
    for i in range(len(frames)):
        if (frame := frames.path(i)) is None:
            if (path := contents.get(frames.digest(i) or "")) is not None:
                found[i] = path
            continue
        path = known.get(os.path.realpath(frame))
        if path is None and _size(frame) in sizes:
            path = contents.get(_content(frame))
        if path is not None:
            found[i] = path
    return found


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _content(path: Path) -> str:
    try:
        return sha256_file(path)
    except OSError:
        return str(path)  # what cannot be read is like nothing else, and is said when its turn comes


def refuse_other_cameras(samples: Sequence[Sample], frames: FrameIndex, few: Path) -> None:
    """Refuse labelled frames of a shape that no frame of the target has.

    Args:
        samples: labelled frames that are none of the target's own.
        frames: of the target.
        few: where they come from, for the sentence.

    Raises:
        InputError: a labelled frame is of another shape than all frames.
    """
    shapes: set[float] = set()
    numbers = iter(range(len(frames)))
    for sample in samples:
        width, height = (sample.width, sample.height) if sample.width else image_size(sample.path)
        while not any(abs(shape * height / width - 1) <= SAME_SHAPE for shape in shapes):
            if (i := next(numbers, None)) is None:
                raise InputError(
                    f"{few}: {sample.path} is {width} x {height} and no frame of {frames.spec} has such a shape: it is "
                    f"not of this target. Give labelled frames of the same camera"
                )
            shapes.add(_shape(frames, i))


def _shape(frames: FrameIndex, i: int) -> float:
    """Width over height; 0 for a frame that cannot be read, which is said when its turn comes."""
    try:
        width, height = frames.size(i)
    except InputError:
        return 0.0
    return width / height


def fingerprint(dataset: Dataset) -> str:
    """What labelled frames a run learnt from, in 16 digits: names of the files, their boxes and labels."""
    text = hashlib.sha256()
    for sample in dataset.samples:
        text.update(f"{sample.path.name}\0{sample.boxes.tolist()}{sample.labels.tolist()}".encode())
    return text.hexdigest()[:16]
