"""The data of a study made ready: descriptions and the list of frames written, and everything counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptedge.data import Use, require_images
from ptedge.data.dataset import Dataset
from ptedge.data.description import read_described
from ptedge.errors import InputError
from ptedge.files import atomic_write

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
        InputError: the data are not there, or counts are off and that is not allowed.
    """
    import tomli_w

    counted: list[Counted] = []
    for one in _needed(study, out, parts):
        dataset = _open(study, one, out)
        require_images(dataset)
        counted.append(count_of(one, dataset))
        with atomic_write(_file(out, one.part), "w") as file:
            file.write(tomli_w.dumps(_values(study, one)))
        if one.part == "oracle" and _lists_frames(study, out):
            with atomic_write(_frames(out), "w") as file:
                file.writelines(f"{sample.path.absolute()}\n" for sample in dataset.samples)
    told = differences(counted)
    if told and not allow:
        raise InputError(
            f"the data are not those of the benchmark: {told}. See that all of it is unpacked and that the split is "
            f"right, or give --allow; the table then tells what is off"
        )
    return replace(study, counted=tuple(counted))


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


def _frames(out: Path) -> Path:
    return (out / "data" / "frames.txt").absolute()
