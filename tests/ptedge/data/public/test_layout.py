"""What is missing in the folder of a public data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import text

from ptedge.data.public import ALL_GUIDES, missing_parts
from ptedge.data.public.guides import Guide, Part, guide_text


def test_missing_parts__one_sentence_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (Part("a/*.png", "a.zip", 2), Part("b/*.xml", "b.zip", 1), Part("c/*", "c.zip", 1, needed=False))
    monkeypatch.setitem(ALL_GUIDES, "made", Guide("Made", "https://example.com", "any", parts, ""))
    text(tmp_path / "a" / "1.png", "")
    missing, other = missing_parts("made", tmp_path)
    assert missing == [f"{tmp_path}/b/*.xml: nothing there. Unpack b.zip into {tmp_path}"]
    assert other == [
        f"{tmp_path}/a/*.png: 1 files, the official set has 2",
        f"{tmp_path}/c/*: nothing there; only `ptedge data fog` needs it (c.zip)",
    ]
    for name in ("a/2.png", "b/1.xml", "c/1"):
        text(tmp_path / name, "")
    assert missing_parts("made", tmp_path) == ([], [])


@pytest.mark.parametrize("name", sorted(ALL_GUIDES))
def test_guide_text__names_every_archive_and_the_next_command(name: str) -> None:
    told = guide_text(name, "/data/set")
    for part in ALL_GUIDES[name].parts:
        assert part.archive in told and part.pattern in told
    assert ALL_GUIDES[name].page in told and f"ptedge data check /data/set --layout {name}" in told
    assert 'root = "/data/set' in told and "ROOT/" not in told


@pytest.mark.parametrize("name", sorted(ALL_GUIDES))
def test_guides__every_part_of_an_empty_folder_is_missing(tmp_path: Path, name: str) -> None:
    missing, other = missing_parts(name, tmp_path)
    assert len(missing) + len(other) == len(ALL_GUIDES[name].parts)
