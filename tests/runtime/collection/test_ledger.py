from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.runtime.collection.ledger import Entry, Ledger, entries_of, protected_images
from ptedge.runtime.collection.policy import Quota

SHARES = {"random": 0.02, "entropy": 0.1, "sigma": 0.08}
NOW = 1e6


def entry(name: str, informative: float, owner: str = "entropy", size: int = 10, stamp: float = 1.0) -> Entry:
    return Entry([f"images/{name}.jpg"], size, owner, informative, stamp)


def names(entries: list[Entry] | None) -> list[str] | None:
    return None if entries is None else [Path(one.files[0]).stem for one in entries]


def room(entries: list[Entry], quota: Quota, new: Entry | None, **more: frozenset[str]) -> list[str] | None:
    return names(Ledger(entries, SHARES).make_room(quota, NOW, new, **more))


def test_make_room__nothing_goes_where_there_is_room() -> None:
    held = [entry("a", 0.5), entry("b", 0.4)]
    assert room(held, Quota(images=3), entry("c", 0.1)) == []
    assert room(held, Quota(images=3, bytes=30), entry("c", 0.1)) == []


def test_make_room__the_least_informative_goes_and_of_equal_ones_the_oldest() -> None:
    held = [entry("a", 0.5), entry("b", 0.4), entry("c", 0.4)]
    assert room(held, Quota(images=3), entry("d", 0.45)) == ["b"]
    assert room(held, Quota(images=100, bytes=30), entry("d", 0.45, size=11)) == ["b", "c"]


def test_make_room__a_frame_that_says_less_stays_out() -> None:
    held = [entry("a", 0.5), entry("b", 0.4)]
    assert room(held, Quota(images=2), entry("c", 0.39)) is None
    assert room(held, Quota(images=2), entry("c", 0.4)) == ["b"]
    assert room([], Quota(bytes=9), entry("c", 1.0)) is None  # larger than all that may be kept


def test_make_room__who_holds_more_than_its_share_gives_up() -> None:
    """Shares 0.1, 0.5 and 0.4. With the new one entropy holds 3 of 5, random 2 of 5: random is furthest beyond."""
    held = [entry(f"e{i}", 0.1 * i) for i in range(2)] + [entry(f"r{i}", 0.9 + 0.01 * i, "random") for i in range(2)]
    assert room(held, Quota(images=4), entry("new", 0.99)) == ["r0"]
    # what no strategy of now owns goes first
    assert room([*held[:3], entry("old", 1.0, "")], Quota(images=4), entry("new", 0.99)) == ["old"]


def test_make_room__a_twentieth_is_freed_at_once() -> None:
    """So that the list is not written anew for every frame; not beyond what says less than the new one."""
    held = [entry(f"{i:03}", i / 1000) for i in range(100)]
    assert room(held, Quota(images=100), entry("new", 0.5)) == [f"{i:03}" for i in range(6)]
    assert room(held, Quota(images=100), entry("new", 0.0025)) == ["000", "001", "002"]


def test_make_room__hour_and_day() -> None:
    held = [entry("old", 0.1, stamp=NOW - 90_000), entry("day", 0.2, stamp=NOW - 5_000), entry("hour", 0.3, stamp=NOW)]
    new = entry("new", 0.9, stamp=NOW)
    assert room(held, Quota(images_hour=1), new) == ["hour"]
    assert room(held, Quota(images_day=2), new) == ["day"]
    assert room(held, Quota(images_hour=1, images_day=2), new) == ["day", "hour"]
    assert room(held, Quota(images_hour=2), new) == []
    assert room(held, Quota(bytes_hour=19), new) == ["hour"]
    assert room(held, Quota(bytes_day=29), new) == ["day"]
    assert room(held, Quota(images_hour=1), entry("new", 0.2, stamp=NOW)) is None


def test_make_room__protected_images_stay() -> None:
    held = [entry("a", 0.1), entry("b", 0.2)]
    assert room(held, Quota(images=2), entry("c", 0.9), protected=frozenset({"a.jpg"})) == ["b"]
    assert room(held, Quota(images=2), entry("c", 0.9), protected=frozenset({"a.jpg", "b.jpg"})) is None


def test_least_until__as_far_as_it_may() -> None:
    ledger = Ledger([entry("a", 0.1), entry("b", 0.2), entry("c", 0.3)], SHARES)
    assert names(ledger.least_until(30, 3, frozenset())) == []
    assert names(ledger.least_until(29, 3, frozenset())) == ["a"]
    assert names(ledger.least_until(30, 0, frozenset({"b.jpg"}))) == ["a", "c"]


def test_remove__forgets_those_alone() -> None:
    held = [entry("a", 0.1), entry("b", 0.2)]
    ledger = Ledger(held, SHARES)
    ledger.remove(held[:1])
    assert ledger.entries == held[1:]


def test_entries_of__triples_are_one_and_older_names_are_known() -> None:
    lines = [
        {"file": "images/1", "bytes": 5, "why": ["neighbour"], "triple": "x", "place": -1, "informative": 0.7},
        {"file": "images/2", "bytes": 6, "why": ["sigma"], "triple": "x", "place": 0, "informative": 0.7},
        {"file": "images/3", "bytes": 7, "why": ["uncertain class"], "informative": 0.4},
        {"file": "images/4", "collected": "1970-01-02T00:00:00+00:00"},
    ]
    found = [(e.files, e.bytes, e.owner, e.informative, e.stamp) for e in entries_of(lines)]
    assert found == [
        (["images/1", "images/2"], 11, "sigma", 0.7, 0.0),
        (["images/3"], 7, "entropy", 0.4, 0.0),
        (["images/4"], 0, "", 0.0, 86400.0),
    ]


@pytest.mark.parametrize("text", ["images/a.jpg\n\n b.jpg \r\n", "a.jpg\nb.jpg"])
def test_protected_images__a_name_a_line(tmp_path: Path, text: str) -> None:
    assert protected_images(tmp_path) == frozenset()
    (tmp_path / "keep.txt").write_text(text)
    assert protected_images(tmp_path) == {"a.jpg", "b.jpg"}
