"""The commands: what is printed, and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_deployments import deployed, numbered_bundle

from ptedge.cli import cli
from ptedge.errors import ArtifactError, InputError

GATE = ("--seconds", "0", "--backend", "cpu")


def call(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_promote__a_line_a_check_and_what_runs(tmp_path: Path) -> None:
    bundle = numbered_bundle(tmp_path / "bundle", 0)
    done = call("promote", bundle, "--to", tmp_path / "deployment", *GATE)
    assert done.exit_code == 0
    assert [line.split()[1] for line in done.stdout.splitlines()][:3] == ["signature", "classes", "answers"]
    assert "(entry 1 of its history)" in done.stderr
    assert "already" in call("promote", bundle, "--to", tmp_path / "deployment", *GATE).stderr


def test_promote__what_fails_is_told_with_its_document(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 1)
    other = numbered_bundle(tmp_path / "other", 1, class_names=("van", "person"))
    done = call("promote", other, "--to", deployment.path, *GATE, "--json")
    assert isinstance(done.exception, ArtifactError)
    assert "fails 1 of 7 checks, first: classes" in str(done.exception)
    assert "--accept classes lets it through" in str(done.exception)
    document = json.loads(done.stdout)
    assert document["promoted"] is False
    assert [check["name"] for check in document["checks"] if not check["passed"]] == ["classes"]
    accepted = call("promote", other, "--to", deployment.path, *GATE, "--accept", "classes")
    assert "accepted  classes" in accepted.stdout


@pytest.mark.parametrize("words", [("--accept", "nothing"), ("--keep", "1"), ("--max-ms", "0"), ("--limit", "0")])
def test_promote__wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert call("promote", tmp_path, "--to", tmp_path / "deployment", *words).exit_code == 2


def test_rollback_and_history__tell_what_runs_and_why(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    first, second = (entry.version for entry in deployment.history())
    done = call("rollback", deployment.path, "--why", "misses vans")
    assert f"runs {first} again, no more {second}" in done.stderr
    told = call("history", deployment.path)
    assert [line.split()[2] for line in told.stdout.splitlines()] == ["promote", "promote", "rollback"]
    assert told.stdout.splitlines()[2].endswith("misses vans")
    assert f"runs {first}; a rollback goes to nothing" in told.stderr
    document = json.loads(call("history", deployment.path, "--json").stdout)
    assert document["withdrawn"] == {second: "misses vans"}


def test_history__of_something_else(tmp_path: Path) -> None:
    for command in ("history", "rollback"):
        assert isinstance(call(command, tmp_path).exception, InputError)
