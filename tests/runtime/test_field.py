from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_field import collect, found, names

from ptedge.detections import Detections
from ptedge.errors import ArtifactError
from ptedge.runtime.field import create_field, export_coco, open_field, prune, summarize


def test_open_field__power_loss_at_any_byte_of_the_last_line(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    path = tmp_path / "f" / "frames.jsonl"
    whole = path.read_bytes()
    two_lines = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for end in range(two_lines, len(whole), 37):
        path.write_bytes(whole[:end])
        assert open_field(tmp_path / "f").images == 2
    (tmp_path / "f" / "images" / ".00000004_x.jpg.1.tmp").write_bytes(b"half")
    sink = collect(tmp_path / "f", count=1, first=9)
    assert sink.kept == 1
    assert sorted(p.name for p in (tmp_path / "f" / "images").iterdir()) == [
        Path(name).name for name in names(tmp_path / "f")
    ]
    assert len(names(tmp_path / "f")) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "broken"), ("[]", "broken"), ('{"class_names": [], "schema": 99}', "schema 99"), (None, "no field folder")],
)
def test_open_field__refuses(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "field.json").write_text(text)
    with pytest.raises(ArtifactError, match=words):
        open_field(tmp_path)


def test_records__broken_line_in_the_middle(tmp_path: Path) -> None:
    create_field(tmp_path / "f", {"class_names": ["car"]})
    (tmp_path / "f" / "frames.jsonl").write_text('{"file": "a"}\n{"fi\n{"file": "b"}\n')
    with pytest.raises(ArtifactError, match="line 2 is broken"):
        open_field(tmp_path / "f")


def test_summarize__counts(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3, detections=lambda i: found() if i else Detections.empty())
    counts = summarize(open_field(tmp_path / "f"))
    assert counts["images"] == 3 and counts["why"] == {"random": 3} and counts["detections"] == {"car": 2}
    assert counts["bytes"] == sum(p.stat().st_size for p in (tmp_path / "f" / "images").iterdir())


def test_export_coco__pre_labels(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    assert export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.3, "CC0") == 2
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["licenses"][0]["name"] == "CC0" and document["info"]["description"]
    assert document["annotations"][0]["bbox"] == [0, 0, 10, 40]
    assert (tmp_path / "f" / "images" / document["images"][0]["file_name"]).is_file()
    export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.9, "CC0")
    assert json.loads((tmp_path / "c.json").read_text())["annotations"] == []


def test_prune__least_informative_first(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=5, detections=lambda i: found(entropy=(0.3, 0.1, 0.5, 0.2, 0.4)[i]))
    assert prune(open_field(tmp_path / "f"), None, 2) == 3
    after = open_field(tmp_path / "f")
    assert [record["frame"] for record in after.records()] == [2, 4]
    assert len(list((tmp_path / "f" / "images").iterdir())) == 2 == after.about["images"]
    biggest = max(record["bytes"] for record in after.records())
    assert prune(after, biggest, None) == 1
    assert prune(open_field(tmp_path / "f"), 10**9, 100) == 0
