"""A few of the kills that ``tests/bench/loop_kills.py`` does by hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from loop_trials import loop_trial

import ptedge.loop.work


def test_kills__nothing_is_done_twice_and_no_frame_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptedge.loop.work, "run_command", ptedge.loop.work.run_command)  # given back after the trial
    found = loop_trial(6, 1, tmp_path)
    assert found.troubles == []
    assert found.kills == 6 and found.rounds >= 2
