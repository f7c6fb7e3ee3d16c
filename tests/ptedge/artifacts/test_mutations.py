"""Thousands of damaged artifacts: each gives what it held or one sentence, never another exception."""

from __future__ import annotations

import collections
import json
import random
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from keys import key_pair
from made_artifacts import write_checkpoint
from tiny_model import tiny_bundle, tiny_manifest, tiny_onnx

from ptedge.artifacts.bundle import open_bundle, write_bundle
from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.signature import read_signature, read_signing_key
from ptedge.artifacts.torch_zip import read_torch_zip
from ptedge.commands.inspect import describe, format_text
from ptedge.errors import PtedgeError
from ptedge.files import parse_json
from ptedge.text import printable

TRIES = 1000
STRANGE: list[Any] = [None, True, -1, 0, 10**400, 1e999, float("nan"), "", "\0", "\ud800", "a" * 5000, [], {}]
STRANGE += [[[]], {"a": {}}, [None], ["a", 1], 0.5, -(2**63), "../x", "/etc/passwd"]


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, taken out, doubled or put in, or the end cut off."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(data) + 1)
        length = draw.choice((1, 1, 2, 8, 100))
        kind = draw.randrange(5)
        if kind == 0:
            data[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        elif kind == 3:
            data[at:at] = draw.choice((b"\0", b"\xff", b"(", b".", b'"', b"[", b"{")) * length
        else:
            del data[at:]
    return bytes(data)


def replaced(value: Any, draw: random.Random) -> Any:
    """A JSON value with one part, at any depth, replaced, taken out or renamed."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        rest = {name: v for name, v in value.items() if name != key}
        kind = draw.randrange(8)
        return (
            rest
            if kind == 0
            else rest | {key + "x": value[key]}
            if kind == 1
            else rest | {key: replaced(value[key], draw)}
        )
    if isinstance(value, list) and value and draw.random() < 0.6:
        at = draw.randrange(len(value))
        return [*value[:at], replaced(value[at], draw), *value[at + 1 :]]
    return draw.choice(STRANGE)


def answers(read: Callable[[], Any], counts: collections.Counter[str]) -> None:
    try:
        read()
        counts["read"] += 1
    except PtedgeError as error:
        counts["refused"] += 1
        assert "\n" not in printable(str(error)).strip() and len(str(error)) < 8000
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def test_checkpoint__damaged(tmp_path: Path) -> None:
    whole = write_checkpoint(tmp_path / "whole.pt").read_bytes()
    draw, counts, path = random.Random(0), collections.Counter[str](), tmp_path / "m.pt"
    for _ in range(TRIES):
        path.write_bytes(damaged(whole, draw))
        answers(lambda: read_torch_zip(path), counts)
        answers(lambda: load_checkpoint(path), counts)
        answers(lambda: printable(format_text(describe(path))).encode(), counts)
    assert counts["refused"] > TRIES


def test_checkpoint__pickle_damaged_in_a_whole_zip(tmp_path: Path) -> None:
    """Past the checksums, so that the pickle's own reader is what answers."""
    write_checkpoint(tmp_path / "whole.pt")
    with zipfile.ZipFile(tmp_path / "whole.pt") as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    draw, counts, path = random.Random(1), collections.Counter[str](), tmp_path / "m.pt"
    for _ in range(TRIES):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in entries.items():
                archive.writestr(name, damaged(content, draw) if name.endswith("data.pkl") else content)
        answers(lambda: load_checkpoint(path), counts)
        answers(lambda: printable(format_text(describe(path))).encode(), counts)
    assert counts["refused"] > TRIES


def test_manifest__parts_replaced(tmp_path: Path) -> None:
    values = json.loads((tiny_bundle(tmp_path / "b").path / "manifest.json").read_text())
    record = {"file": "m.engine", "sha256": "1", "onnx_sha256": "2", "precision": "fp32", "tensorrt": "10.3.0"}
    values["engines"] = [record | {"cuda": "12", "gpu": "Orin", "compute_capability": "8.7"}]
    draw, counts = random.Random(2), collections.Counter[str]()
    for _ in range(2 * TRIES):
        answers(partial(Manifest.from_json, replaced(values, draw), "manifest.json"), counts)
    assert counts["refused"] > TRIES and counts["read"] > 50


@pytest.mark.parametrize("damage", [damaged, None])
def test_bundle__damaged(tmp_path: Path, damage: Callable[[bytes, random.Random], bytes] | None) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    where = bundle.path / "manifest.json"
    whole = where.read_bytes()
    draw, counts = random.Random(3), collections.Counter[str]()
    for _ in range(TRIES):
        if damage is not None:
            where.write_bytes(damage(whole, draw))
        else:
            where.write_text(json.dumps(replaced(json.loads(whole), draw)))
        answers(lambda: open_bundle(bundle.path), counts)
        answers(lambda: printable(format_text(describe(bundle.path))).encode(), counts)
    assert counts["refused"] > TRIES


def test_onnx__damaged(tmp_path: Path) -> None:
    whole = tiny_bundle(tmp_path / "b").model_path.read_bytes()
    draw, counts, path = random.Random(4), collections.Counter[str](), tmp_path / "m.onnx"
    for _ in range(TRIES):
        path.write_bytes(damaged(whole, draw))
        answers(lambda: open_bundle(path), counts)
        answers(lambda: printable(format_text(describe(path))).encode(), counts)
    assert counts["refused"] > TRIES


def test_signature__damaged(tmp_path: Path) -> None:
    key = read_signing_key(key_pair(tmp_path)[0])
    bundle = write_bundle(tmp_path / "b", tiny_manifest(), tiny_onnx(), key)
    whole = (bundle.path / "bundle.sig").read_bytes()
    draw, counts, path = random.Random(5), collections.Counter[str](), tmp_path / "x.sig"
    for i in range(TRIES):
        values = parse_json(whole)
        path.write_bytes(damaged(whole, draw) if i % 2 else json.dumps(replaced(values, draw)).encode())
        answers(lambda: read_signature(path), counts)
    assert counts["refused"] > TRIES // 2
