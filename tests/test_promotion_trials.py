"""A few of the kills that ``tests/bench/promotion_kills.py`` does by hundreds."""

from __future__ import annotations

from pathlib import Path

from promotion_trials import promotion_trial


def test_kills__one_whole_version_runs_after_each(tmp_path: Path) -> None:
    found = promotion_trial(6, 1, tmp_path)
    assert found.troubles == []
    assert sum(found.kills.values()) == 6
