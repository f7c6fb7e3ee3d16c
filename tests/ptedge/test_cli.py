from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from ptedge import __version__
from ptedge import cli as module
from ptedge.cli import COMMANDS, cli, main
from ptedge.errors import InputError


def call_main(monkeypatch: pytest.MonkeyPatch, command: click.Command | None, *arguments: str) -> int:
    """Exit status of ``ptedge ARGUMENTS``, the command replaced by ``command``."""
    if command is not None:
        monkeypatch.setattr(module._LazyGroup, "get_command", lambda *_: command)
    monkeypatch.setattr(sys, "argv", ["ptedge", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    code = caught.value.code
    return code if isinstance(code, int) else 0 if code is None else -1


def test_help__lists_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.output


def test_version__is_the_package_version() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output == f"ptedge, version {__version__}\n"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands__every_one_exists_and_explains_itself(name: str) -> None:
    path, _, function = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(path), function)
    assert isinstance(command, click.Command)
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_main__success_is_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def fine() -> None:
        click.echo("done")

    assert call_main(monkeypatch, fine, "doctor") == 0
    assert capsys.readouterr() == ("done\n", "")


def test_main__ptedge_error_is_one_line_on_stderr_and_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def bad() -> None:
        raise InputError("x.jpg does not exist. Give an image")

    assert call_main(monkeypatch, bad, "doctor") == 1
    assert capsys.readouterr() == ("", "ptedge: x.jpg does not exist. Give an image\n")


def test_main__missing_torch_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def needs_torch() -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch.nn")

    assert call_main(monkeypatch, needs_torch, "doctor") == 1
    assert capsys.readouterr().err == 'ptedge: torch is not installed. Install it with: pip install "ptedge[train]"\n'


def test_main__other_missing_module_is_a_bug_and_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise ModuleNotFoundError("No module named 'nonsense'", name="nonsense")

    monkeypatch.setattr(module._LazyGroup, "get_command", lambda *_: broken)
    monkeypatch.setattr(sys, "argv", ["ptedge", "doctor"])
    with pytest.raises(ModuleNotFoundError):
        main()


@pytest.mark.parametrize("arguments", [["nosuch"], ["--nosuch"], ["doctor", "--nosuch"]])
def test_main__wrong_usage_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert call_main(monkeypatch, None, *arguments) == 2
    assert "Usage:" in capsys.readouterr().err


def test_module__python_m_ptedge_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ptedge", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.endswith(f"version {__version__}\n")
