"""Two stages in every precision answer as the one graph of that precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptedge.artifacts.bundle import METADATA_KEY, open_bundle, write_bundle
from ptedge.artifacts.onnx_metadata import without_metadata
from ptedge.backends.choose import open_runner
from ptedge.export.check_graph import check_stages
from ptedge.export.stages import cut_stages
from ptedge.graph_contract import FEATURES, IMAGES


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_cut_stages__answers_of_each_precision(tiny: Path, precision: str, tmp_path: Path) -> None:
    whole = open_bundle(tiny / precision)
    first, second = cut_stages(without_metadata(whole.read_model(), METADATA_KEY))
    check_stages(first, second, whole.manifest)
    split = write_bundle(tmp_path / "b", whole.manifest, first, second=second)
    one, two = open_runner(whole, "cpu", 1), open_runner(open_bundle(split.path), "cpu", 1)
    images = np.random.default_rng(0).integers(0, 256, one.inputs[IMAGES][0], dtype=np.uint8)
    wanted, found = (runner.infer({IMAGES: images}) for runner in (one, two))
    assert wanted["num_detections"].min() > 0
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, atol=1e-2, err_msg=name)
    kinds = {runner.inputs[FEATURES][1].name for runner in two.stages[1:]}  # type: ignore[attr-defined]
    assert kinds <= {"float16", "float32"}
