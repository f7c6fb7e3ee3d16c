"""The documents say what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from places import ROOT

from ptedge.cli import COMMANDS, cli
from ptedge.errors import PtedgeError

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_config_page__is_what_the_source_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "config_docs.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links__lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands__in_the_pages_exist_with_their_options(page: Path) -> None:
    wrong = []
    for line in re.findall(r"^(?:\$ )?ptedge (.+)$(?!\nError: )", page.read_text("utf-8"), re.MULTILINE):
        words = line.partition("  #")[0].split()
        if words[0] not in COMMANDS:
            continue  # prose or drawing
        command = cli.get_command(None, words[0])  # type: ignore[arg-type]
        assert command is not None
        if subcommand := getattr(command, "commands", {}).get(words[1] if len(words) > 1 else ""):
            command = subcommand
        known = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
        wrong += [f"{words[0]} {word}" for word in words if word.startswith("--") and word not in known | {"--help"}]
    assert wrong == []


@pytest.mark.parametrize("name", ["jetson.md", "tensorrt.md"])
def test_pages_of_devices__ask_for_nothing_that_needs_torch(name: str) -> None:
    lines = re.findall(r"^(?:\$ )?ptedge (.+)$", (ROOT / "docs" / name).read_text("utf-8"), re.MULTILINE)
    workshop = {"train", "adapt", "export", "study", "plot", "demo", "calibrate"}
    assert lines
    assert [line for line in lines if line.split()[0] in workshop or "--against" in line or ".pt" in line] == []


def test_commands_page__shows_what_is_said() -> None:
    """The answers to wrong words in docs/commands.md are those that are given."""
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    shown = re.findall(r"^\$ ptedge (.+)\n((?:Error|ptedge): .+)$", page, re.MULTILINE)
    assert len(shown) > 3
    for words, said in shown:
        result = CliRunner().invoke(cli, words.split())
        told = f"ptedge: {result.exception}" if isinstance(result.exception, PtedgeError) else result.stderr
        assert told.strip().splitlines()[-1] == said


def test_pages__hold_no_unfinished_text() -> None:
    for page in PAGES:
        assert not re.search(r"TODO|TBD|FIXME|XXX|lorem|<!--", page.read_text("utf-8")), page.name


def test_troubleshooting__quotes_what_the_program_says() -> None:
    source = "\n".join(
        path.read_text("utf-8")
        for part in ("ptedge", "training", "export", "runtime")
        for path in (ROOT / part).rglob("*.py")
    )
    said = re.sub(r"\"\s*\n\s*f?\"", "", source).replace("'", '"')  # a sentence may be split over lines
    quoted = re.findall(r"\*\*`([^`]+)`\*\*", (ROOT / "docs" / "troubleshooting.md").read_text("utf-8"))
    assert len(quoted) > 10
    assert [words for words in quoted if words.replace("'", '"') not in said] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages__lines_fit(page: Path) -> None:
    """Rows of tables too: what does not fit into one is a list, or two tables."""
    lines = page.read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []


def test_site__builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the site needs the extra docs")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "-q",
            "-f",
            str(ROOT / "mkdocs.yml"),
            "-d",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference.html").read_text("utf-8")
    assert [name for name in COMMANDS if f'id="ptedge-{name}"' not in page] == []
