from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
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


def test_ptedge__a_signal_is_passed_on_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, begun, finished = tmp_path / "command", tmp_path / "begun", tmp_path / "finished"
    command.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path({str(finished)!r}).touch(), sys.exit(143)))\n"
        f"pathlib.Path({str(begun)!r}).touch()\n"
        "time.sleep(60)\n"
    )
    command.chmod(0o755)

    def interrupt() -> None:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(sys, "executable", str(command))
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(SystemExit) as ended:
        Steps(tmp_path / "logs", lambda _: None).ptedge("wait", "train")
    thread.join()
    assert ended.value.code == 130 and finished.exists()
