"""One round with commands as they are, in processes of their own, on a detector of two convolutions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in
from made_site import SITE, made_site
from places import ROOT
from tiny_detector import use_tiny_detector, write_pictures

from ptedge.cli import cli
from ptedge.loop.rounds import STEPS, round_of
from ptedge.runtime.deployment.place import Deployment

LAUNCHER = ROOT / "tests" / "tiny_ptedge.py"
ADAPT = ["optim.steps=4", "optim.batch=2", "workers=0", "curves=false", "log_every=1", "monitor.every=2"]
ADAPT += ["monitor.frames=2", "choice.enabled=false", "checkpoint_every=1", "optim.lr=0.0001"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A first model, and a bundle of it."""
    from click.testing import CliRunner

    use_tiny_detector(monkeypatch)
    data = write_pictures(tmp_path / "source", 6)
    sets = [*ADAPT[:5], "model.weights=none", "model.input_size=[64,96]", "model.score_threshold=0.01"]
    words = ["train", str(data), "--out", str(tmp_path / "run"), *(w for s in sets for w in ("--set", s))]
    for command in (words, ["export", str(tmp_path / "run" / "model.pt"), "--out", str(tmp_path / "bundle")]):
        done = CliRunner().invoke(cli, command, catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
    write_pictures(tmp_path / "target", 8, seed=1)
    words = ["run", str(tmp_path / "bundle"), str(tmp_path / "target" / "images"), "--save", "none", "--backend", "cpu"]
    words += ["--collect", str(tmp_path / "field"), "--collect-random", "1", "--collect-interval", "0"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return tmp_path / "run" / "model.pt"


def test_loop__from_collected_frames_to_every_deployment(source: Path, tmp_path: Path) -> None:
    launcher = json.dumps([sys.executable, str(LAUNCHER)])
    text = SITE.replace('["store"]', '["field"]').replace("source.pt", str(source))
    text += f"\n[adapt]\nset = {json.dumps(ADAPT)}\n\n[commands]\n"
    text += "".join(f"{step} = {launcher}\n" for step in ("adapt", "export"))
    # an untrained detector has scores that lie too close together for the real one
    text += f"verify = {json.dumps([sys.executable, stand_in.__file__])}\n"
    place = made_site(tmp_path / "site", text.replace('["field"]', '["../field"]'))
    command = [sys.executable, "-m", "ptedge", "loop", str(place.file), "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["did"] == list(STEPS) and answer["state"] == "done", done.stderr
    adapted, exported = (round_of(place.folder, 1).record(step) for step in ("adapt", "export"))
    assert adapted is not None and exported is not None and adapted.result["kind"] == "source_free"
    entry = Deployment(place.home / "south").history()[-1]
    assert entry.model["checkpoint"] == adapted.result["checkpoint"]
    assert entry.model["model_hash"] == exported.result["model_hash"]
    assert entry.model["lineage"] == "source_free, 4 steps"
