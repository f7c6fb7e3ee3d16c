"""Field folders for tests, collected from pictures of noise."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.detections import Detections
from ptedge.frames.source import Frame
from ptedge.runtime.collection.policy import Policy, Quota, Shares, Spacing
from ptedge.runtime.field import create_field, open_field
from ptedge.runtime.sinks.collect import FieldSink
from ptedge.runtime.sinks.files import Result

ALL = Policy(Shares(random=1.0, entropy=0.0, sigma=0.0), Spacing(frames=0, duplicate_bits=-1))


def policy(
    shares: dict[str, float], spacing: dict[str, float] | None = None, quota: dict[str, int] | None = None, **more: Any
) -> Policy:
    """A policy of these strategies alone, every frame far enough from the others and unlike them."""
    nothing = dict.fromkeys(Shares().by_name, 0.0)
    spacing = {"frames": 0, "duplicate_bits": -1} | (spacing or {})
    return Policy(Shares(**nothing | shares), Spacing(**spacing), Quota(**(quota or {})), **more)


def found(entropy: float = 0.1, sigma: float = 1.0) -> Detections:
    return Detections(
        np.array([[0, 0, 10, 40]], np.float32),
        np.array([0.8], np.float32),
        np.array([0]),
        np.full((1, 4), sigma, np.float32),
        np.array([entropy], np.float32),
    )


def scene(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (9, 10, 3), np.uint8).repeat(8, 0).repeat(8, 1)


def collect(folder: Path, policy: Policy = ALL, count: int = 10, first: int = 0, **changes: Any) -> FieldSink:
    sink = FieldSink(folder, policy, ("car",), "hash", {"input_size": [64, 96]})
    for i in range(first, first + count):
        detections = changes.get("detections", lambda i: found())(i)
        image = changes.get("image", scene)(i)
        sink.write(Result(Frame(image, i, i / 10, "rtsp://u:p@cam/1", None), detections, ("car",)))
    sink.close()
    return sink


def names(folder: Path) -> list[str]:
    return [record["file"] for record in open_field(folder).records()]


def fill(folder: Path, count: int, size: int) -> Path:
    """Add frames that are bytes of chance and no pictures: what moves them does not look into them."""
    about = {"class_names": ["car"]}
    field = create_field(folder, about)
    for _ in range(count):
        image = os.urandom(size)
        field.last_id += 1
        name = f"{field.last_id:08d}_{hashlib.sha256(image).hexdigest()[:12]}.jpg"
        field.add(name, image, {"time": field.last_id / 10, "width": 1280, "height": 720, "detections": []})
    field.save_about()
    return folder


def digests(folder: Path) -> set[str]:
    """The sha256 of each image of a field folder."""
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "images").glob("*.jpg")}
