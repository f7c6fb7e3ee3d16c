"""Completion in the shell as docs/commands.md has it: what a press of Tab asks, and the scripts themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

ENTRY = [sys.executable, "-c", "import sys; sys.argv[0] = 'ptedge'; from ptedge.__main__ import main; main()"]


def ask(instruction: str, **variables: str) -> str:
    environment = {**os.environ, "_PTEDGE_COMPLETE": instruction, **variables}
    return subprocess.run(ENTRY, env=environment, capture_output=True, text=True, check=False, timeout=60).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ptedge ex", {"plain,export"}),
        ("ptedge data ch", {"plain,check"}),
        ("ptedge run --min", {"plain,--min-score"}),
        ("ptedge run --backend c", {"plain,cuda", "plain,cpu"}),
        ("ptedge inspect ", {"file,"}),
    ],
)
def test_completion__offers(words: str, offered: set[str]) -> None:
    count = len(words.split()) - (not words.endswith(" "))
    assert set(ask("bash_complete", COMP_WORDS=words, COMP_CWORD=str(count)).split()) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion__scripts_are_those_of_the_page(shell: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert f"_PTEDGE_COMPLETE={shell}_source ptedge" in page
    script = ask(f"{shell}_source")
    assert "_PTEDGE_COMPLETE" in script and "ptedge" in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script, "utf-8")
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True, timeout=60)
