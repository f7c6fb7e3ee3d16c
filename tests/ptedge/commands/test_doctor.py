from __future__ import annotations

import json
import subprocess
import sys

from click.testing import CliRunner

from ptedge.cli import cli
from ptedge.commands.doctor import format_checks
from ptedge.machine.packages import Check


def test_doctor__json_is_one_document() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    names = [check["name"] for check in document["checks"]]
    assert {"Python", "machine", "GPU", "OpenCV", "ONNX Runtime", "TensorRT", "training", "export"} <= set(names)
    assert all(set(check) == {"name", "status", "detail", "fix"} for check in document["checks"])
    runtime = next(check for check in document["checks"] if check["name"] == "ONNX Runtime")
    assert "runs on" in runtime["detail"]


def test_doctor__text_and_help() -> None:
    result = CliRunner().invoke(cli, ["doctor"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "ONNX Runtime" in result.stdout
    assert "ptedge doctor" in CliRunner().invoke(cli, ["doctor", "--help"]).output


def test_doctor__imports_no_torch_and_no_onnx() -> None:
    code = """
import sys
from ptedge.commands.doctor import run_checks
run_checks()
assert not {"torch", "onnx", "torchvision", "timm", "tensorrt"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_format_checks__commands_stand_below_what_they_repair() -> None:
    text = format_checks([Check("one", "ok", "1.0"), Check("second", "missing", "not there", "pip install it")])
    assert text.splitlines() == [
        "ok  one     1.0",
        "--  second  not there",
        "            > pip install it",
    ]
