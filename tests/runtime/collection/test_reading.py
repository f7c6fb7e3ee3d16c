from __future__ import annotations

from pathlib import Path

from ptedge.runtime.collection.reading import reading, removing


def test_reading__keeps_images_from_being_removed(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    with reading(tmp_path), reading(tmp_path), removing(tmp_path) as free:
        assert not free
    with removing(tmp_path) as free:
        assert free
    assert [path.name for path in tmp_path.rglob("*")] == ["images"]


def test_reading__of_nothing_is_no_trouble(tmp_path: Path) -> None:
    with reading(tmp_path), removing(tmp_path) as free:
        assert free
