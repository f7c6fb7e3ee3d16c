"""Canary channels: what one deployment has tried goes to others, the same bytes, and what it sent back does not."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result
from keys import key_pair
from made_deployments import deployed, kept, numbered_bundle, promoted
from places import ROOT

from ptedge.artifacts.trust import Trust
from ptedge.cli import cli
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.runtime.deployment.change import rollback
from ptedge.runtime.deployment.channels import pass_on, tried
from ptedge.runtime.deployment.place import Deployment


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, ["promote", *map(str, words)])


def test_tried__what_is_on_probation_waits(tmp_path: Path) -> None:
    canary = deployed(tmp_path, 2)
    with pytest.raises(InputError, match=r"is on probation at .*deployment: no run has kept it"):
        tried(canary)
    second = tried(canary, unproven=True).promotion
    assert second.number == 2
    kept(canary)
    assert tried(canary).promotion == second
    rollback(canary, why="misses vans")  # the first version had nothing to prove
    assert tried(canary).promotion.number == 1


def test_pass_on__the_same_bytes_and_checks_and_where_they_are_from(tmp_path: Path) -> None:
    canary = deployed(tmp_path, 1)
    done = pass_on(tried(canary), tmp_path / "north", why="good week")
    entry = Deployment(tmp_path / "north").history()[0]
    first = canary.history()[0]
    assert done.promoted and (entry.version, entry.files, entry.model) == (first.version, first.files, first.model)
    assert entry.checks == first.checks and len(entry.checks) > 3
    assert (entry.origin, entry.why, entry.before) == (f"{canary.path}, entry 1", "good week", "")
    assert Deployment(tmp_path / "north").folder_of(first.version, first.files).is_dir()  # held to the hashes
    assert not pass_on(tried(canary), tmp_path / "north").promoted


def test_pass_on__not_to_where_it_was_rolled_back(tmp_path: Path) -> None:
    canary = deployed(tmp_path, 1)
    north = Deployment(tmp_path / "north")
    promoted(numbered_bundle(tmp_path / "other", 7), north.path)
    pass_on(tried(canary), north.path)
    rollback(north, why="other camera")
    with pytest.raises(InputError, match="rolled back"):
        pass_on(tried(canary), north.path)
    assert pass_on(tried(canary), north.path, again=True).number == 4


def test_tried__what_was_changed_or_nobody_signed_is_refused(tmp_path: Path) -> None:
    canary = deployed(tmp_path, 1)
    with pytest.raises(ArtifactError, match="nobody vouches"):
        tried(canary, Trust.read([key_pair(tmp_path)[1]]))
    model = canary.path / "versions" / canary.history()[0].version / "model.onnx"
    model.write_bytes(model.read_bytes() + b" ")
    with pytest.raises(ArtifactError, match="was changed since"):
        tried(canary)


def test_promote_from__many_and_one_that_refuses_keeps_nobody_else(tmp_path: Path) -> None:
    canary = deployed(tmp_path, 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    places = ("--to", tmp_path / "north", "--to", tmp_path / "full", "--to", tmp_path / "south")
    done = call("--from", canary.path, *places, "--json")
    assert isinstance(done.exception, OutputError)
    assert "1 of 3 deployments did not take" in str(done.exception) and "other than a deployment" in done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((ROOT / "ptedge" / "schemas" / "promote.json").read_text("utf-8")))
    assert [made["promoted"] for made in document["promotions"]] == [True, True]
    for name in ("north", "south"):
        assert Deployment(tmp_path / name).state().version == document["version"]
    told = CliRunner().invoke(cli, ["history", str(tmp_path / "north")]).stdout
    assert f"from {canary.path}, entry 1" in told


@pytest.mark.parametrize(
    "words",
    [
        ("--to", "north"),
        ("bundle", "--from", "canary", "--to", "north"),
        ("bundle", "--to", "north", "--to", "south"),
        ("bundle", "--to", "north", "--unproven"),
        ("--from", "canary", "--to", "north", "--frames", "field"),
        ("--from", "canary", "--to", "north", "--dry-run"),
    ],
)
def test_promote_from__wrong_usage(words: tuple[str, ...]) -> None:
    assert call(*words).exit_code == 2
