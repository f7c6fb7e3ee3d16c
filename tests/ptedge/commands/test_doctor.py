from __future__ import annotations

import ast
import json
import subprocess
import sys

from click.testing import CliRunner

from ptedge.cli import cli
from ptedge.commands.doctor import format_findings
from ptedge.machine.finding import Finding


def test_doctor__json_is_one_document() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    names = [check["name"] for check in document["checks"]]
    assert {"Python", "machine", "GPU", "OpenCV", "ONNX Runtime", "TensorRT", "training", "export"} <= set(names)
    assert all(set(check) == {"kind", "name", "status", "detail", "fix"} for check in document["checks"])
    runtime = next(check for check in document["checks"] if check["kind"] == "onnxruntime")
    assert "runs on" in runtime["detail"]


def test_doctor__text_and_help() -> None:
    result = CliRunner().invoke(cli, ["doctor"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "ONNX Runtime" in result.stdout
    assert "ptedge doctor" in CliRunner().invoke(cli, ["doctor", "--help"]).output


def test_doctor__imports_no_torch_and_no_onnx() -> None:
    code = """
import sys
from ptedge.commands.doctor import look_around
look_around()
assert not {"torch", "onnx", "torchvision", "timm", "tensorrt"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_doctor__works_without_numpy_and_opencv() -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "cv2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from ptedge.commands.doctor import look_around
print({finding.kind: finding.status for finding in look_around()})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found = ast.literal_eval(done.stdout)
    assert (found["opencv"], found["onnxruntime"], found["machine"]) == ("problem", "problem", "info")


def test_format_findings__commands_stand_below_what_they_repair() -> None:
    text = format_findings(
        [Finding("a", "one", "ok", "1.0"), Finding("b", "second", "missing", "not there", "pip install it")]
    )
    assert text.splitlines() == [
        "ok  one     1.0",
        "--  second  not there",
        "            > pip install it",
    ]
