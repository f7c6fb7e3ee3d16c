"""What the worker refuses and advises. Building itself needs a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptedge.errors import ArtifactError
from ptedge.export.engine import worker
from ptedge.export.engine.options import BuildOptions


@pytest.mark.parametrize(
    ("words", "major", "tf32", "expected"),
    [
        (
            "Could not find any implementation for node {X}",
            8,
            False,
            "install cuBLAS of the CUDA version .*, or .*--tf32",
        ),
        ("Could not find any implementation for node {X}", 8, True, "install cuBLAS .* is for$"),
        ("Could not find any implementation for node {X}", 10, False, "^$"),
        ("out of memory", 8, False, "^$"),
    ],
)
def test_advice__where_tensorrt_8_finds_no_kernel(words: str, major: int, tf32: bool, expected: str) -> None:
    assert re.search(expected, worker._advice(words, major, BuildOptions(tf32=tf32)))


def test_main__a_model_that_was_changed_since(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"changed")
    job = {"model": str(tmp_path / "model.onnx"), "model_sha256": "0" * 64, "timing_cache": None}
    with pytest.raises(ArtifactError, match="changed while it was being opened"):
        worker.main(job)
