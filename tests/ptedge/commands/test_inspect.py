from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_artifacts import write_checkpoint

from ptedge.cli import cli
from ptedge.commands.inspect import describe, format_text
from ptedge.errors import InputError


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize("name", ["notes.txt", "folder", "absent.pt"])
def test_describe__unknown_things(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=name):
        describe(tmp_path / name)


def test_inspect__json_and_text(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "model.pt")
    assert json.loads(invoke(path, "--json").stdout) == describe(path)
    text = invoke(path).stdout
    assert "224 x 400 (height x width)" in text
    assert "16x32, 64x8" in text
    assert "car, person" in text
    assert "ptedge inspect runs/" in invoke("--help").output


def test_inspect__loads_no_torch(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "model.pt")
    code = f"""
import sys
from pathlib import Path
from ptedge.commands.inspect import describe
assert describe(Path({str(path)!r}))["anchors"]
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_format_text__nested_and_empty() -> None:
    text = format_text({"kind": "x", "bytes": 2_500_000, "table": {"a": 1, "long": []}, "nothing": {}})
    assert text.splitlines() == [
        "kind     x",
        "bytes    2500000 (2.5 MB)",
        "table",
        "  a     1",
        "  long  none",
        "nothing  none",
    ]
