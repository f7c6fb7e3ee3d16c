"""The data of a study made ready: descriptions and the list of frames written, and everything counted."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptedge.data import Use, require_images
from ptedge.data.dataset import Dataset
from ptedge.data.description import read_described
from ptedge.errors import InputError
from ptedge.files import atomic_write, write_json

from .described import Counted, Described, count_of, differences
from .plan import Study

_USES: dict[str, Use] = {"source": "train", "oracle": "train", "val": "score", "source_val": "score"}


def located(study: Study, out: Path) -> Study:
    """The study with its described parts as files in ``out/data``, which :func:`make_ready` writes.

    Where no frames are named, those of the described ``oracle`` part are adapted to: its images, never its labels.

    Args:
        study: checked.
        out: its folder.
    """
    data = study.data
    for one in study.described:
        data = replace(data, **{one.part: str(_file(out, one.part))})
        if one.part == "oracle" and not data.frames:
            data = replace(data, frames=str(_frames(out)))
    return replace(study, data=data)


def make_ready(study: Study, out: Path, parts: Collection[str], *, allow: bool) -> Study:
    """Write what :func:`located` names, and compare all counts with the official ones.

    Args:
        study: located.
        out: its folder.
        parts: of the data that its rows need.
        allow: go on where counts are off.

    Returns:
        The study with the counts.

    Raises:
        InputError: the data are not there, are others than those that runs in ``out`` were made on, or counts are off
            and that is not allowed.
    """
    opened = [(one, _open(study, one, out)) for one in _needed(study, out, parts)]
    counted = [count_of(one, dataset) for one, dataset in opened]
    _refuse_other_data(counted, out)
    told = differences(counted)
    if told and not allow:
        raise InputError(
            f"the data are not those of the benchmark: {told}. See that all of it is unpacked and that the split is "
            f"right, or give --allow; the table then tells what is off"
        )
    for _, dataset in opened:
        require_images(dataset)
    _write(study, out, opened, counted)
    return replace(study, counted=tuple(counted))


def _write(
    study: Study, out: Path, opened: Collection[tuple[Described, Dataset]], counted: Collection[Counted]
) -> None:
    import tomli_w

    for one, dataset in opened:
        with atomic_write(_file(out, one.part), "w") as file:
            file.write(tomli_w.dumps(_values(study, one)))
        if one.part == "oracle" and _lists_frames(study, out):
            with atomic_write(_frames(out), "w") as file:
                file.writelines(f"{sample.path.absolute()}\n" for sample in dataset.samples)
    if counted:
        write_json(_counts(out), {**_earlier(out), **{one.part: _plain(one) for one in counted}})


def count_what_is_there(study: Study, out: Path, parts: Collection[str]) -> tuple[list[Counted], list[str]]:
    """Count without writing anything, for a dry run.

    Returns:
        Counts of the parts that can be opened, and why the others cannot.
    """
    counted, missing = [], []
    for one in _needed(study, out, parts):
        try:
            counted.append(count_of(one, _open(study, one, out)))
        except InputError as error:
            missing.append(f"{one.part}: {error}")
    return counted, missing


def _refuse_other_data(counted: Collection[Counted], out: Path) -> None:
    """Runs on other data would stand in one table with these."""
    earlier = _earlier(out)
    for one in counted:
        before = earlier.get(one.part)
        if before is not None and before != _plain(one):
            raise InputError(
                f"{out} was begun with other data: {one.part} had {before['images']} images and "
                f"{sum(before['boxes'].values())} boxes, and has {one.images} and {sum(one.boxes.values())} now. "
                f"Choose another --out"
            )


def _earlier(out: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_counts(out).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{_counts(out)} cannot be read ({type(error).__name__}). Choose another --out") from None
    return found


def _plain(one: Counted) -> dict[str, Any]:
    return {"images": one.images, "boxes": dict(one.boxes)}


def _needed(study: Study, out: Path, parts: Collection[str]) -> list[Described]:
    frames = "frames" in parts and _lists_frames(study, out)
    wanted = {*parts, "source_val", *(["oracle"] if frames else [])}
    return [one for one in study.described if one.part in wanted]


def _lists_frames(study: Study, out: Path) -> bool:
    return study.data.frames == str(_frames(out))


def _open(study: Study, one: Described, out: Path) -> Dataset:
    return read_described(_values(study, one), _file(out, one.part), use=_USES[one.part])


def _values(study: Study, one: Described) -> dict[str, Any]:
    return {**one.values, "root": str(Path(study.data.root, str(one.values.get("root", "."))))}


def _file(out: Path, part: str) -> Path:
    return (out / "data" / f"{part}.toml").absolute()


def _counts(out: Path) -> Path:
    return out / "data" / "counts.json"


def _frames(out: Path) -> Path:
    return (out / "data" / "frames.txt").absolute()
