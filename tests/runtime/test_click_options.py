from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ptedge.config import require
from ptedge.errors import InputError
from ptedge.runtime.click_options import byte_size, grouped, seconds_apart, secret


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


def read(path: Path | None) -> str | None:
    return secret(click.Context(click.Command("x")), click.Option(["--x"]), path)


def test_secret__is_the_first_line_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("  the token \nanother line\n")
    assert read(tmp_path / "token") == "the token" and read(None) is None


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00hidden"])
def test_secret__a_file_without_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(InputError, match=r"token file .*token") as caught:
        read(tmp_path / "token")
    assert "hidden" not in str(caught.value)


def test_secret__no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="cannot be read"):
            read(path)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1 in 24 h", 86400), ("2/1d", 43200), ("1 in 30 min", 1800), ("0.5 in 10 s", 20)]
)
def test_seconds_apart__units(text: str, seconds: float) -> None:
    none: Any = None
    assert seconds_apart(none, none, text) == seconds


@pytest.mark.parametrize(
    "text", ["", "24 h", "1 in 24", "0 in 24 h", "1 in 0 h", "-1 in 2 h", "9 in 1 s", "1 in 2 weeks"]
)
def test_seconds_apart__refuses(text: str) -> None:
    none: Any = None
    with pytest.raises(click.BadParameter, match="1 in 24 h"):
        seconds_apart(none, none, text)
