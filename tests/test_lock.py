"""The locked requirements of a device: complete, with hashes, and within what pyproject.toml allows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOCKS = sorted((ROOT / "requirements").glob("device-*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ENTRY = re.compile(r"^([a-z0-9][a-z0-9-]*)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}\n", re.M)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def test_locks__are_there() -> None:
    assert LOCKS


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock__nothing_but_versions_with_hashes(path: Path) -> None:
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.M)
    assert ENTRY.sub("", text) == ""
    names = [name for name, _ in ENTRY.findall(text)]
    assert names == sorted(set(names))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_lock__has_every_dependency_in_an_allowed_version(path: Path) -> None:
    locked = dict(ENTRY.findall(path.read_text("utf-8")))
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["sign"]]
    for requirement in wanted:
        name, lowest, marker = re.fullmatch(r"([\w.-]+)>=([\d.]+) ?(;.*)?", requirement.replace(" ;", ";")).groups()  # type: ignore[union-attr]
        if marker and ("!= 'Linux'" in marker or "< '3.11'" in marker):  # of other machines, of an older Python
            continue
        assert numbers(locked[name]) >= numbers(lowest), requirement
