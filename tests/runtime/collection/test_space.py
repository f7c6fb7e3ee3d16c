from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from made_field import collect, policy

from ptedge.runtime.collection.policy import Quota
from ptedge.runtime.collection.space import Space, in_words
from ptedge.runtime.field import open_field


class Disk(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[Disk]:
    now = [Disk(3_000_000, 0, 3_000_000)]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: now[0])
    return now


@pytest.mark.parametrize(
    ("total", "share", "floor"),
    [
        (3_000_000, 0.05, 150_000),
        (3_000_000, 0.0, 128 << 10),  # a picture and a list still fit
        (1_000_000, 0.05, 128 << 10),
        (10**12, 0.05, 1 << 30),
        (64 << 20, 0.5, 32 << 20),
    ],
)
def test_lacks__what_stays_free_goes_by_the_disk(
    tmp_path: Path, disk: list[Disk], total: int, share: float, floor: int
) -> None:
    space = Space(tmp_path, 0, 0, Quota(free_share=share), lambda text: None)
    disk[0] = Disk(total, 0, floor + 100)
    assert not space.lacks(100) and space.lacks(101)


def test_lacks__is_told_once_with_numbers(tmp_path: Path, disk: list[Disk]) -> None:
    told: list[str] = []
    space = Space(tmp_path, 0, 0, Quota(bytes=10), told.append)
    assert told == []
    disk[0] = Disk(3_000_000, 2_800_000, 200_000)
    assert space.lacks(60_000) and space.lacks(60_000)
    assert told == [
        f"collecting into {tmp_path} pauses: 200 kB of the disk's 3.0 MB are free, and 150 kB of them stay free "
        "(free_share 0.05). Remove files there; it goes on by itself"
    ]


def test_quota__is_what_the_disk_has_room_for(tmp_path: Path, disk: list[Disk]) -> None:
    told: list[str] = []
    disk[0] = Disk(3_000_000, 1_000_000, 2_000_000)
    space = Space(tmp_path, 3, 500_000, Quota(images=7), told.append)
    # 0.5 MB of images, and 2 MB less 0.15 MB; a fifth of it for the list
    assert space.quota == Quota(images=7, bytes=1_880_000)
    assert told[0].startswith(f"the disk of {tmp_path} has room for 1.9 MB of the 2.0 GB that may be collected")


def test_quota__no_run_makes_a_folder_smaller(tmp_path: Path) -> None:
    told: list[str] = []
    assert Space(tmp_path, 9, 5_000, Quota(images=7, bytes=10_000), told.append).quota.images == 9
    assert told == [
        f"{tmp_path} holds 9 images, 5 kB, more than the 7 and 10 kB that may be there. It grows no further; "
        "ptedge field prune makes it smaller"
    ]
    assert Space(tmp_path, 9, 5_000, Quota(images=9, bytes=4_000), told.append).quota.bytes == 5_000


def test_collect__a_small_disk_is_filled_and_then_only_better_frames_come(tmp_path: Path, disk: list[Disk]) -> None:
    disk[0] = Disk(200_000, 0, 200_000)
    sink = collect(tmp_path / "f", policy({"random": 1}), count=40)
    folder = open_field(tmp_path / "f")
    assert 0 < folder.size <= 0.8 * (200_000 - (128 << 10)) and sink.counters["evicted"] > 0


def test_collect__a_full_disk_pauses_collecting_and_is_counted(tmp_path: Path, disk: list[Disk]) -> None:
    disk[0] = Disk(400_000, 400_000, 0)
    sink = collect(tmp_path / "f", count=5)
    assert sink.kept == 0 and sink.counters["disk nearly full"] == 5


def test_in_words() -> None:
    assert [in_words(n) for n in (999, 1_500_000, 2_040_000_000)] == ["1 kB", "1.5 MB", "2.0 GB"]
