"""The files of samples/deploy name what exists, and the tools that read them take them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_page import MODEL, made_counters
from places import ROOT
from prometheus_client.parser import text_string_to_metric_families

from ptedge.cli import COMMANDS
from ptedge.runtime.cli import run
from ptedge.runtime.page.status import RunStatus

DEPLOY = ROOT / "samples" / "deploy"


def exported() -> set[str]:
    """Names of all series, those that only live sources, drift, collection and push have included."""
    families = text_string_to_metric_families(RunStatus(made_counters(), MODEL, True).metrics())
    source = (ROOT / "runtime" / "page" / "status.py").read_text("utf-8")
    keys = {
        f"ptedge_source_{key}_total" for key in ("reconnects", "stalls", "corrupt", "failures") if f'"{key}"' in source
    }
    named = {f"ptedge_{name}" for name in re.findall(r'_family\("(\w+)"', source)}
    return {sample.name for family in families for sample in family.samples} | keys | named


def expressions() -> list[str]:
    board: dict[str, Any] = json.loads((DEPLOY / "grafana" / "ptedge.json").read_text("utf-8"))
    alerts: dict[str, Any] = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))
    shown = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return shown + [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]


def test_board_and_alerts__ask_for_series_that_a_run_exports() -> None:
    known = exported()
    asked = {name for expression in expressions() for name in re.findall(r"\bptedge_\w+", expression)}
    assert len(asked) >= 10
    assert asked - known == set()


def test_board__panels_do_not_lie_over_one_another() -> None:
    board = json.loads((DEPLOY / "grafana" / "ptedge.json").read_text("utf-8"))
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24


def words_of_run() -> list[str]:
    unit = (DEPLOY / "ptedge.service").read_text("utf-8")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return [re.findall(r"^ExecStart=\S+/ptedge (.+)$", unit, re.MULTILINE)[0], compose["services"]["ptedge"]["command"]]


@pytest.mark.parametrize("words", words_of_run())
def test_run__is_given_options_that_it_has(words: str) -> None:
    options = {name for parameter in run.params for name in parameter.opts}
    command, *rest = words.split()
    assert command == "run"
    assert {word for word in rest if word.startswith("--")} - options == set()


def test_dockerfiles__end_in_a_command_that_exists() -> None:
    for path in sorted(DEPLOY.glob("*.Dockerfile")):
        lines = path.read_text("utf-8").splitlines()
        assert json.loads(lines[-2].removeprefix("ENTRYPOINT ")) == ["ptedge"]
        assert json.loads(lines[-1].removeprefix("CMD "))[0] in COMMANDS
        assert any(line.startswith("USER ptedge") for line in lines)  # not root


def test_compose__mounts_files_that_are_there() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", [])]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    assert len(files) >= 4
    assert [name for name in files if not (DEPLOY / name).is_file()] == []
    build = compose["services"]["ptedge"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT and (ROOT / build["dockerfile"]).is_file()
    named = {mount.split(":")[0] for mount in mounts if not mount.startswith((".", "$"))}
    assert named == set(compose["volumes"])


def test_unit__systemd_takes_it(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not on this machine")
    unit = tmp_path / "ptedge.service"  # with a program that exists, or this would be the only complaint
    unit.write_text(
        (DEPLOY / "ptedge.service").read_text("utf-8").replace("/opt/ptedge/bin/ptedge", "/bin/true"), "utf-8"
    )
    done = subprocess.run([analyse, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60)
    if "Failed to" in done.stderr and "ptedge.service" not in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")


def test_prometheus__takes_its_settings(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool (Debian's package prometheus) is not on this machine")
    (tmp_path / "token").write_text("a token", "utf-8")
    settings = (DEPLOY / "prometheus.yml").read_text("utf-8").replace("/run/secrets/token", str(tmp_path / "token"))
    (tmp_path / "prometheus.yml").write_text(settings, "utf-8")
    shutil.copy(DEPLOY / "alerts.yml", tmp_path)
    words = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
