"""A few of the kills that ``tests/bench/kills.py`` does by hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_trials import trial


@pytest.mark.parametrize(("command", "kills"), [("run", 6), ("full", 6), ("train", 4), ("adapt", 2)])
def test_kills__nothing_is_lost_and_runs_end_as_without(tmp_path: Path, command: str, kills: int) -> None:
    found = trial(command, kills, 1, tmp_path)
    assert found.troubles == []
    assert found.kills == kills and found.lines > 0
    assert (found.images > 0) if command in ("run", "full") else (found.ends > 0)
