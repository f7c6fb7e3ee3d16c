from __future__ import annotations

import logging
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from ptedge.cli import COMMANDS, cli
from ptedge.errors import InputError
from ptedge.verbosity import quiet, with_common_options


def test_quiet__nothing_on_stderr_inside(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet():
        click.echo("a", err=True)
        print("b", file=sys.stderr)
        click.echo("data")
    click.echo("c", err=True)
    with quiet(False):
        click.echo("d", err=True)
    assert capsys.readouterr() == ("data\n", "c\nd\n")


def test_quiet__errors_pass() -> None:
    with pytest.raises(ValueError, match="told"), quiet():
        raise ValueError("told")


@click.group()
def group() -> None:
    """Of one command."""


@group.command()
@click.option("--bad", is_flag=True)
def work(bad: bool) -> None:
    """Tell, answer, and log."""
    click.echo("working", err=True)
    click.echo("answer")
    logging.getLogger("ptedge").info("a camera came back")
    if bad:
        raise InputError("x.jpg is broken")


def run(*words: str) -> Result:
    return CliRunner().invoke(with_common_options(group), list(words))


def test_with_common_options__as_ever_without() -> None:
    result = run("work")
    assert (result.stdout, result.stderr) == ("answer\n", "working\n")
    assert not [param for param in work.params if "-q" in param.opts], "the command itself stays as it is"


@pytest.mark.parametrize("words", [("work", "-q"), ("-q", "work"), ("work", "--quiet")])
def test_with_common_options__quiet_leaves_the_answer(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert (result.stdout, result.stderr, result.exit_code) == ("answer\n", "", 0)


@pytest.mark.parametrize("words", [("work", "-v"), ("-v", "work")])
def test_with_common_options__verbose_tells_versions_logs_and_time(words: tuple[str, ...]) -> None:
    result = run(*words)
    first, *rest = result.stderr.splitlines()
    assert first.startswith("ptedge ") and "Python " in first and "numpy " in first
    assert rest[:2] == ["working", "ptedge: a camera came back"]
    assert rest[2].startswith("took ") and rest[2].endswith(" s")
    assert result.stdout == "answer\n"
    assert run("work").stderr == "working\n", "nothing stays behind"


def test_with_common_options__verbose_tells_where_an_error_came_from() -> None:
    assert "Traceback" not in run("work", "--bad").stderr
    assert 'raise InputError("x.jpg is broken")' in run("work", "--bad", "-v").stderr


def test_with_common_options__both_is_wrong_usage_which_is_told() -> None:
    for words in (("work", "-q", "-v"), ("-q", "work", "-v"), ("work", "-q", "--nonsense")):
        result = run(*words)
        assert result.exit_code == 2
        assert "Error:" in result.stderr


@pytest.mark.parametrize("name", list(COMMANDS))
def test_commands__all_know_both(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    inner = command.commands.values() if isinstance(command, click.Group) else []
    for one in (command, *inner):
        assert one is not None
        assert {"-v", "-q"} <= {option for param in one.params for option in param.opts}


def test_commands__an_error_is_told_even_if_quiet(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["inspect", str(tmp_path / "missing"), "-q"])
    assert isinstance(result.exception, InputError)
