"""The files of samples/loop name what exists, and the tools that read them take them, where these are there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT

from ptedge.config import from_dict, read_toml
from ptedge.loop.cli import loop
from ptedge.loop.settings import Site, read_site

LOOP = ROOT / "samples" / "loop"
CALL = re.compile(r"ptedge loop (\S+)(.*)")


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return found


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((LOOP / "cronjob.yaml").read_text("utf-8")))


def test_site__is_one(tmp_path: Path) -> None:
    assert read_site(LOOP / "site.toml").site.deploy.canary.startswith("s3://")
    inside = documents()[0]["data"]["gate-2.toml"]
    (tmp_path / "gate-2.toml").write_text(inside, "utf-8")
    assert from_dict(Site, read_toml(tmp_path / "gate-2.toml"), "cronjob.yaml").folder == "/site/gate-2"


@pytest.mark.parametrize("name", ["crontab", "ptedge-loop@.service", "sites.sbatch"])
def test_calls__are_of_the_command(name: str) -> None:
    lines = [line for line in (LOOP / name).read_text("utf-8").splitlines() if not line.startswith("#")]
    calls = [found for line in lines if (found := CALL.search(line))]
    assert len(calls) == 1 and (calls[0][1].endswith(".toml") or calls[0][1] == '"$site"')
    options = {option for parameter in loop.params for option in parameter.opts}
    assert {word for word in calls[0][2].split() if word.startswith("--")} - options == set()


def test_units__systemd_takes_them(tmp_path: Path) -> None:
    analyse = tool("systemd-analyze")
    for name in ("ptedge-loop@.service", "ptedge-loop@.timer"):
        text = (LOOP / name).read_text("utf-8").replace("/opt/ptedge/bin/ptedge", "/bin/true")
        (tmp_path / name).write_text(text, "utf-8")
    units = [str(tmp_path / f"ptedge-loop@gate-2.{kind}") for kind in ("service", "timer")]
    done = subprocess.run([analyse, "verify", *units], capture_output=True, text=True, check=False, timeout=60)
    if "Failed to" in done.stderr and "ptedge-loop" not in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")


def test_cronjob__is_what_kubernetes_takes() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for document in documents():
        validate.validate(document, validate.latest_version(), strict=True)


def test_cronjob__names_what_it_has() -> None:
    config, claim, job = documents()
    spec = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    assert volumes["site"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert {mount["name"] for mount in spec["containers"][0]["volumeMounts"]} == set(volumes)
    assert spec["containers"][0]["args"][1] == f"/config/{next(iter(config['data']))}"


def test_sbatch__is_a_script(tmp_path: Path) -> None:
    script = LOOP / "sites.sbatch"
    subprocess.run([tool("bash"), "-n", script], check=True, timeout=60)
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").touch()
    (tmp_path / "ptedge").write_text('#!/bin/sh\necho "$@" > called\n')
    (tmp_path / "ptedge").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "2"}
    subprocess.run([tool("bash"), script], check=True, timeout=60, cwd=tmp_path, env=environment)
    assert (tmp_path / "called").read_text() == "loop ./two.toml\n"


def test_sbatch__shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run(
        [tool("shellcheck"), LOOP / "sites.sbatch"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout


def test_sbatch__slurm_takes_its_head() -> None:
    """Without a controller sbatch reads the options and then says that it finds none."""
    done = subprocess.run(
        [tool("sbatch"), "--test-only", LOOP / "sites.sbatch"], capture_output=True, text=True, check=False, timeout=60
    )
    assert "unrecognized option" not in done.stderr and "Invalid" not in done.stderr
