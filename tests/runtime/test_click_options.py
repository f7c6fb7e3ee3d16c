from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ptedge.config import require
from ptedge.runtime.click_options import byte_size, grouped


@dataclass(frozen=True)
class Size:
    width: int = 4
    height: int = 3

    def __post_init__(self) -> None:
        require("height", self.height, 0, self.width)


def name_or_none(name: str | None) -> str | None:
    return name


@pytest.fixture
def command() -> click.Command:
    size = grouped("size", Size, click.option("--width", type=int, default=4), click.option("--height", type=int))
    named = grouped("title", name_or_none, click.option("--name"))

    @click.command()
    @click.argument("word")
    @size
    @named
    @click.option("--last", is_flag=True)
    def show(word: str, size: Size, title: str | None, last: bool) -> None:
        click.echo(f"{word} {size.width} {size.height} {title} {last}")

    return show


def test_grouped__a_value_by_name_and_the_options_in_order(command: click.Command) -> None:
    done = CliRunner().invoke(command, ["a", "--height", "2", "--name", "b"])
    assert done.output == "a 4 2 b False\n"
    assert [param.name for param in command.params] == ["word", "width", "height", "name", "last"]


def test_grouped__a_refused_value_is_wrong_usage(command: click.Command) -> None:
    done = CliRunner().invoke(command, ["a", "--height", "5"])
    assert done.exit_code == 2 and "height is 5; it must be at least 0 and at most 4" in done.output


@pytest.mark.parametrize(("text", "size"), [("500", 500), ("1.5kb", 1500), ("500MB", 5 * 10**8), (" 2 g ", 2 * 10**9)])
def test_byte_size__units(text: str, size: int) -> None:
    none: Any = None
    assert byte_size(none, none, text) == size and byte_size(none, none, None) is None


@pytest.mark.parametrize("text", ["", "0", "-1MB", "much", "1e999", "nan"])
def test_byte_size__refuses(text: str) -> None:
    none: Any = None
    with pytest.raises(click.BadParameter, match="write a number of bytes"):
        byte_size(none, none, text)
