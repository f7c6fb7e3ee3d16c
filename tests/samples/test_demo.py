from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ptedge.cli import cli
from ptedge.errors import MissingExtraError, OutputError
from ptedge.samples import demo as module
from ptedge.samples.demo import closing, print_table, start_afresh
from ptedge.samples.walk import Row, Walk

ROWS = [
    Row("source only", "clear scenes", {"images": 60, "AP50": 0.3}, None),
    Row("source-free", "+ frames", {"images": 60, "AP50": 0.5}, None),
    Row("adapted", "+ clear scenes", {"images": 60, "AP50": 0.5567}, {"AP50": 0.5561}),
]


def test_start_afresh__takes_an_earlier_demo_but_no_other_folder(tmp_path: Path) -> None:
    start_afresh(tmp_path / "demo")
    (tmp_path / "demo" / "old.txt").touch()
    start_afresh(tmp_path / "demo")
    assert not (tmp_path / "demo" / "old.txt").exists()
    assert (tmp_path / "demo" / "earlier-1" / "old.txt").exists()
    start_afresh(tmp_path / "demo")
    kept = ["demo.json", "earlier-1", "earlier-2", "settings"]  # side by side, not one in the other
    assert sorted(p.name for p in (tmp_path / "demo").iterdir()) == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="not empty and not from an earlier demo"):
        start_afresh(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_print_table__a_line_a_model_in_percent_with_its_gain(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS)
    out = capsys.readouterr().out
    assert "On 60 labelled scenes in haze" in out
    assert [word in out for word in ("30.0", "50.0", "+20.0", "55.7", "+25.7")] == [True] * 5
    assert "adapted, as the bundle that goes to the device, without torch: 55.6" in out


def test_closing__names_files_of_this_demo_and_commands_that_exist() -> None:
    text = closing(Path("runs/demo-2"), ROWS)
    assert "runs/demo-2/before_after.jpg" in text
    assert "ptedge report runs/demo-2/adapted runs/demo-2/bundle" in text
    assert "ptedge report runs/demo-2/source_free" in closing(Path("runs/demo-2"), ROWS[:2])
    commands = [line.strip().partition("   ")[0].split()[1:] for line in text.splitlines() if "  ptedge " in line]
    assert len(commands) == 8
    for words in commands:
        command: Any = cli.get_command(None, words[0])  # type: ignore[arg-type]
        command = getattr(command, "commands", {}).get(words[1], command)
        command.make_context("it", [word for word in words[1:] if word != command.name])


def test_demo__says_at_once_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = module.importlib.util.find_spec
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    result = CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / "demo")])
    assert isinstance(result.exception, MissingExtraError)
    assert str(result.exception) == 'torch is not installed. Install it with: pip install "ptedge[train,export]"'
    assert not (tmp_path / "demo").exists()


def test_demo__a_second_one_takes_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Walk, "rows", lambda self: ROWS)
    said = [CliRunner().invoke(cli, ["demo"]) for _ in range(2)]
    assert [result.exit_code for result in said] == [0, 0]
    assert sorted(p.name for p in Path("runs").iterdir()) == ["demo", "demo-2"]
    assert "runs/demo-2/before_after.jpg" in said[1].stderr
    assert "ptedge train LABELS" in said[1].stderr
    assert "55.7" in said[1].stdout
