"""YAML: what a file says, as text, and what is refused. Right values as the YAML specification has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.data.parsing import yaml_file
from ptedge.data.parsing.yaml_file import load_yaml
from ptedge.errors import InputError


def text(path: Path, content: str) -> Path:
    path.write_text(content, "utf-8")
    return path


def test_load_yaml__every_form_of_a_data_yaml(tmp_path: Path) -> None:
    content = """# data
path: "../x: y"   # quoted
train: [a/b, 'c d',
  e]
val:
  - v1
  - 'v # 2'
names:
  0: traffic light
  1: car  # comment
nc: 2
map: {0: a, 1: "b, c"}
roboflow:
  url: https://x.y/z
"""
    assert load_yaml(text(tmp_path / "a.yaml", content)) == {
        "path": "../x: y",
        "train": ["a/b", "c d", "e"],
        "val": ["v1", "v # 2"],
        "names": {"0": "traffic light", "1": "car"},
        "nc": "2",
        "map": {"0": "a", "1": "b, c"},
        "roboflow": {"url": "https://x.y/z"},
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("names: [car, driver's door, bus]", ["car", "driver's door", "bus"]),
        ("names: ['car', 'driver''s door']", ["car", "driver's door"]),
        ('names:\n- "\\u8F66"\n- bus', ["车", "bus"]),
        ("names:\n  - a long\n    name\n  - bus", ["a long name", "bus"]),  # a wrapped plain scalar
        ("names: [no, yes, on, 1e3, 1_000, 0x10, 12:30, 2001-01-01, 1.0]", None),
        ("names:\n- |\n  car\n- >-\n  a\n  b", ["car\n", "a b"]),
        ("base: &b [car, bus]\nnames: *b", ["car", "bus"]),
        ("a: &a {0: car}\nnames:\n  <<: *a\n  1: bus", {"1": "bus", "0": "car"}),
        ("names: {0: 'null', 1: ~}", {"0": "null", "1": None}),
        ("names:", None),
    ],
)
def test_load_yaml__names_stay_as_written(tmp_path: Path, content: str, expected: object) -> None:
    if content.startswith("names: [no"):
        expected = content[len("names: [") : -1].split(", ")
    assert load_yaml(text(tmp_path / "a.yaml", content))["names"] == expected


def test_load_yaml__mark_and_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfnames: [car]")
    assert load_yaml(tmp_path / "a.yaml") == {"names": ["car"]}
    assert load_yaml(text(tmp_path / "b.yaml", "# nothing\n")) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("names: [car", "not valid YAML"),
        ("- car", "it holds a list"),
        ("names: [a]\nnames: [b]", "the key 'names' is there twice"),
        ("names: {0: a, 0: b}", "the key '0' is there twice"),
        ("names: !!python/object/apply:os.system [echo]", "not valid YAML"),
        ("nc: !!int x", "not valid YAML"),
        ("? [a]\n: b", "not valid YAML"),
        ("names: " + "[" * 5000, "nested deeper than 20"),
        ("a: &a [x]\nb: [" + "*a," * 17 + "]", "more than 16 aliases"),
        ("a: &a [*a]", None),
    ],
)
def test_load_yaml__refused(tmp_path: Path, content: str, message: str | None) -> None:
    path = text(tmp_path / "a.yaml", content)
    if message is None:  # an anchor that holds itself is one more list, not an endless one
        load_yaml(path)
        return
    with pytest.raises(InputError, match=message):
        load_yaml(path)


def test_load_yaml__a_billion_laughs_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    with pytest.raises(InputError, match="aliases"):
        load_yaml(text(tmp_path / "a.yaml", "\n".join(lines)))


def test_load_yaml__size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "MOST_CHARACTERS", 8)
    with pytest.raises(InputError, match="larger than"):
        load_yaml(text(tmp_path / "a.yaml", "names: [car]"))
    with pytest.raises(InputError, match="cannot be read"):
        load_yaml(tmp_path / "none.yaml")
