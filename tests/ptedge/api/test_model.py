from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from tiny_model import CLASS_NAMES, HEIGHT, WIDTH, tiny_bundle, tiny_onnx

from ptedge.api.model import load
from ptedge.backends.predictor import open_predictor
from ptedge.errors import BackendError, InputError, MissingExtraError

IMAGE = np.zeros((128, 192, 3), np.uint8)  # twice the input


def test_load__takes_text_paths_bundles_and_bare_graphs(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    for place in (str(bundle.path), bundle.path, bundle.model_path):
        with load(place, backend="cpu", threads=1) as model:
            assert (model.class_names, model.input_size, model.backend) == (CLASS_NAMES, (HEIGHT, WIDTH), "cpu")
            assert "car, person; input 64 x 96 on cpu" in repr(model)
    with pytest.raises(BackendError):
        model(IMAGE)  # closed


def test_load__what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "missing")


def test_load__a_checkpoint_without_torch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.pt").write_bytes(b"any")
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("ptedge.backends.checkpoint_predictor")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r'torch is not installed.*"ptedge\[train\]"'):
        load(tmp_path / "model.pt")


def test_model__answers_as_the_predictor_does(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b")
    expected = open_predictor(bundle.path, "cpu").detect(IMAGE)
    cv2.imwrite(str(tmp_path / "a.png"), IMAGE)
    with load(bundle.path) as model:
        for image in (IMAGE, tmp_path / "a.png", str(tmp_path / "a.png")):
            np.testing.assert_array_equal(model(image).boxes, expected.boxes)
        assert model(IMAGE).image is IMAGE
        assert model(tmp_path / "a.png").image == tmp_path / "a.png"


def test_model__a_list_gives_a_list_in_order(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), IMAGE[:64, :96])
    bundle = tiny_bundle(tmp_path / "b", tiny_onnx(batch=2), batch=2)
    with load(bundle.path) as model:
        found = model([IMAGE, tmp_path / "a.png", IMAGE])
        assert [float(one.boxes[0, 2]) for one in found] == [80.0, 40.0, 80.0]  # the middle one has no scale
        assert len(model((IMAGE, IMAGE))) == 2
        assert model([]) == []


def test_model__min_score_and_color(tmp_path: Path) -> None:
    with load(tiny_bundle(tmp_path / "b").path) as model:
        assert model(IMAGE, min_score=0.7).names == ["car"]
        image = model(np.full((4, 4, 3), (1, 2, 3), np.uint8), color="bgr").image
        assert isinstance(image, np.ndarray) and image[0, 0].tolist() == [3, 2, 1]
        with pytest.raises(InputError, match="min_score is 30"):
            model(IMAGE, min_score=30)
