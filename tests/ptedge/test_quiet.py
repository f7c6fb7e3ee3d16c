from __future__ import annotations

import sys

import click
import pytest

from ptedge.quiet import quiet


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
