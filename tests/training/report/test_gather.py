from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from made_artifacts import bundle_in, write_checkpoint
from made_run import write_run

from ptedge.errors import InputError
from ptedge.training.report.gather import gather, sort_folders


def test_gather__reads_a_run_and_its_bundle(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    write_checkpoint(run / "model.pt")
    (run / "config.toml").write_text("seed = 0\n")
    (run / "summary.json").write_text('{"command": "adapt"}')
    facts = gather(run, bundle_in(tmp_path / "bundle"), None, None)
    assert facts.adapted and facts.class_names == ("car", "person")
    assert facts.config == "seed = 0\n" and facts.curves is not None
    assert facts.manifest["backbone"] == "vgg16" and facts.before is None and facts.notes == []


def test_gather__finds_the_start_where_the_run_says_if_its_hash_is_the_parents(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    start = write_checkpoint(tmp_path / "start.pt", kind="source")
    write_checkpoint(run / "model.pt")
    (run / "summary.json").write_text(json.dumps({"command": "adapt", "checkpoint": str(start)}))
    assert gather(run, None, None, None).before is None  # the parent of the checkpoint made here is another file
    kept = run / "checkpoints" / "step_000000.pt"
    kept.parent.mkdir()
    kept.write_bytes(start.read_bytes())
    facts = gather(run, None, None, None)
    assert facts.before == kept and facts.before_is_start
    facts = gather(run, None, None, start)
    assert facts.before == start and facts.start["sha256"] == hashlib.sha256(start.read_bytes()).hexdigest()


def test_gather__damage_is_noted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "summary.json").write_text("{")
    (run / "model.pt").write_bytes(b"no checkpoint")
    facts = gather(run, None, None, None)
    assert [note.split()[0].rstrip(":") for note in facts.notes] == ["summary.json", "model.pt"]


def test_gather__finds_benchmarks(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "speed.json").write_text('{"schema": "ptedge.benchmark/1", "runs": []}')
    (run / "other.json").write_text('{"schema": "x"}')
    assert [path.name for path, _ in gather(run, None, None, None).benchmarks] == ["speed.json"]


def test_gather__no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no run"):
        gather(tmp_path, None, None, None)
    with pytest.raises(InputError, match="does not exist"):
        gather(write_run(tmp_path / "run"), None, None, tmp_path / "none.pt")


def test_sort_folders__by_what_is_in_them(tmp_path: Path) -> None:
    bundle, field = bundle_in(tmp_path / "bundle"), tmp_path / "field"
    field.mkdir()
    (field / "field.json").write_text("{}")
    assert sort_folders([field, bundle]) == (bundle, field)
    assert sort_folders([]) == (None, None)
    with pytest.raises(InputError, match="both a bundle"):
        sort_folders([bundle, bundle])
    with pytest.raises(InputError, match="neither a bundle"):
        sort_folders([tmp_path])
