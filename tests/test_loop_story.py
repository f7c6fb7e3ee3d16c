"""The story of docs/loop.md, small: from day to fog, over the canary to all, and planted bundles go back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from loop_story import Plan, Story, made_streets
from places import ROOT

from ptedge.cli import cli
from ptedge.loop.rounds import STEPS, round_of
from ptedge.runtime.deployment.place import Deployment

SMALL = ("optim.steps=2", "optim.batch=2", "optim.warmup=0", "workers=0", "monitor.frames=2", "choice.enabled=false")


class StoryInside(Story):
    """The same with its own commands in this process, which need not load torch each; the loop's have their own."""

    def call(self, *words: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(cli, [*words, "--json"])
        (self.folder / "log").write_text(done.stderr, encoding="utf-8")
        return done.exit_code, json.loads(done.stdout) if done.stdout.strip() else {}


def test_story__a_stream_turns_to_fog_and_the_site_gets_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = made_streets(tmp_path / "data", day=30, changed=30, later=12, val=2)
    plan = Plan(
        ROOT / "samples" / "demo_model" / "model.pt",
        **places,
        config=ROOT / "samples" / "demo_source_free.toml",
        sets=SMALL,
        frames=30,
        gate=8,
        max_loss=0.9,  # two steps of training prove nothing
        probation=0.1,
    )
    story = StoryInside(plan, tmp_path)
    story.go()
    assert story.troubles == [] and story.lost == 0
    assert "no drift" in story.told["loop by day"]
    assert "drift:" in story.told["loop: decide"]
    assert story.told["change: frames, collected and pushed"] == "30, 30"
    records = {step: round_of(tmp_path / "site", 1).record(step) for step in STEPS}
    assert None not in records.values()
    adapted, exported = records["adapt"], records["export"]
    assert adapted is not None and exported is not None and adapted.result["kind"] == "source_free"
    entry = Deployment(tmp_path / "south").history()[-1]
    assert entry.model["checkpoint"] == adapted.result["checkpoint"]
    assert entry.model["model_hash"] == exported.result["model_hash"]
    assert entry.model["lineage"] == "source_free, 2 steps"
