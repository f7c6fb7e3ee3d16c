"""A checkpoint and a bundle of a few numbers, as ptedge writes them: for tests of ``ptedge inspect``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptedge.artifacts.bundle import write_bundle
from ptedge.artifacts.lineage import Lineage
from ptedge.artifacts.manifest import Manifest


def write_checkpoint(path: Path, kind: str = "adapted") -> Path:
    """As ptedge.artifacts.checkpoint writes it, with two anchors for weights."""
    torch = pytest.importorskip("torch", reason="checkpoints are made with torch")

    header = {
        "config": {"backbone": "efficientnet_lite0", "input_size": [224, 400]},
        "class_names": ["car", "person"],
        "lineage": {"kind": kind, "role": "teacher", "parents": ["ab" * 32], "step": 5},
    }
    state = {"anchors.log_wh": torch.tensor([[16.0, 32.0], [64.0, 8.0]]).log(), "head.weight": torch.zeros(3)}
    torch.save({"format": "ptedge-checkpoint", "version": 1, "header": json.dumps(header), "state": state}, path)
    return path


def bundle_in(folder: Path) -> Path:
    manifest = Manifest(
        class_names=("car",),
        input_size=(64, 96),
        anchors=((16.0, 32.0),),
        backbone="vgg16",
        lineage=Lineage("source_free", "teacher", "cd" * 32),
    )
    write_bundle(folder, manifest, b"")
    return folder
