"""Every command line in the documents is one that its program takes; what it does is run where a page shows a way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import pytest
from places import ROOT
from shell_blocks import LANGUAGES, Line, blocks, languages, parsed

from ptedge.config import load_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINES = [line for page in PAGES for block in blocks(page) for line in block]
# programs that are not the project's: named here, as nothing checks their words
OTHERS = {
    "sudo": "changes the device: its packages, swap and clocks",
    "export": "the reader's shell",
    "echo": "the reader's shell, into its start file",
    ".": "the reader's shell",
    "label-studio": "a tool of others, which serves until it is ended",
    "ssh-keygen": "of OpenSSH; makes a key",
    "torchrun": "of torch; the ptedge words after it are checked",
}
PLACEHOLDER = "COMMAND"
VARIABLES = {"$size": "240x416", "$batch": "1"}  # of a loop of the shell: the first value


def ptedge_words(line: Line) -> tuple[str, ...] | None:
    """The ``ptedge ...`` of a line, also behind a launcher; ``None`` where there is none."""
    if line.program == "ptedge":
        return line.words
    if line.program == "torchrun" and "ptedge" in line.words:
        return line.words[line.words.index("ptedge") :]
    return None


OWN = [line for line in LINES if ptedge_words(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks__say_what_they_are(page: Path) -> None:
    """``sh`` is checked below, ``python`` by test_python_page.py; ``text`` is a drawing, an output or a file tree."""
    assert [place for place, language in languages(page) if language not in LANGUAGES] == []


def test_blocks__are_found() -> None:
    assert len(OWN) > 80


@pytest.mark.parametrize("line", OWN, ids=lambda line: line.place)
def test_ptedge__takes_the_line(
    line: Line, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # files of the reader's
    monkeypatch.setattr(click.Path, "convert", lambda self, value, *_: self.coerce_path_result(value))
    words = tuple(VARIABLES.get(word, word) for word in ptedge_words(line) or ())
    if words[1] == PLACEHOLDER or words[1].startswith("--"):
        assert words[-1] == "--help"
        return
    try:
        name, context = parsed(words)
    except click.exceptions.Exit:
        return  # --help
    if name in ("train", "adapt"):
        pytest.importorskip("torch", reason="settings of training name torch's modules")
        from ptedge.training.config import AdaptConfig, TrainConfig

        file = context.params["config_file"]
        cls = TrainConfig if name == "train" else AdaptConfig
        load_config(cls, ROOT / file if file is not None else None, context.params["overrides"])


@pytest.mark.parametrize("line", [line for line in LINES if line not in OWN], ids=lambda line: line.place)
def test_other_programs__are_there_with_their_targets(line: Line) -> None:
    if line.program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        named = re.findall(r"(?:^|\s)(?:\.|ptedge)\[([\w,-]+)\]", " ".join(line.words))
        assert [extra for group in named for extra in group.split(",") if extra not in extras] == []
    elif line.program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert [word for word in line.words[1:] if "=" not in word and word not in targets] == []
    elif line.program in ("python", "python3"):
        check_python(line)
    elif line.program == ".ci/run":
        assert (ROOT / line.program).is_file()
    else:
        assert line.program in OTHERS, f"{line.place}: name {line.program} among OTHERS, with the reason"


def check_python(line: Line) -> None:
    """The script is there and knows the options."""
    words = line.words[1:]
    if words[0] == "-c":
        compile(words[1], line.place, "exec")
    elif words[0] == "-m":
        assert words[1] in ("venv", "ptedge.samples.draw")
    else:
        text = (ROOT / words[0]).read_text("utf-8")
        options = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
        assert [option for option in options if f'"{option}"' not in text] == []
