from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptedge.errors import TrainingError
from ptedge.samples.steps import Steps


def test_ptedge__returns_stdout_and_says_what_it_did(tmp_path: Path) -> None:
    said: list[str] = []
    steps = Steps(tmp_path / "logs", said.append)
    assert "version" in steps.ptedge("ask the version", "--version")
    assert said[:2] == ["[1] ask the version", "    $ ptedge --version"]
    assert re.fullmatch(r"    \d+ s", said[2])
    assert list(steps.seconds) == ["ask the version"]


def test_ptedge__a_failing_command_ends_it_with_the_command_s_own_words(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "logs", lambda _: None)
    with pytest.raises(TrainingError) as caught:
        steps.ptedge("score it", "eval", tmp_path / "none.pt", tmp_path / "none.json")
    log = tmp_path / "logs" / "01-eval.txt"
    assert str(caught.value).startswith("the demo stopped at 'score it': ")
    assert "none." in str(caught.value)
    assert str(caught.value).endswith(f"(all it said: {log})")
    assert "Traceback" not in log.read_text()
    assert steps.seconds == {}
