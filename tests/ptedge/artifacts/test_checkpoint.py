"""Checkpoints: there and back, and every file that is not one."""

from __future__ import annotations

import dataclasses
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from source_tree import FILES, name_of
from tiny_detector import CLASS_NAMES, tiny_config, use_tiny_detector

from ptedge.artifacts.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_tensors,
    read_document,
    save_checkpoint,
)
from ptedge.artifacts.lineage import Lineage
from ptedge.calibration import SideCalibration
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, InputError, PtedgeError


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)


@pytest.fixture
def checkpoint() -> Checkpoint:
    torch.manual_seed(0)
    model = ProbabilisticFasterRCNN(tiny_config(), len(CLASS_NAMES))
    with torch.no_grad():
        model.anchors.log_wh.add_(0.1)
    lineage = Lineage(kind="adapted", role="teacher", parents=("aa", "bb"), step=7, data=("night",))
    return Checkpoint(tiny_config(), CLASS_NAMES, model.state_dict(), lineage)


@pytest.fixture
def saved(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "model.pt", checkpoint)
    return tmp_path / "model.pt"


def test_load_checkpoint__round_trip(checkpoint: Checkpoint, saved: Path) -> None:
    loaded = load_checkpoint(saved)
    assert loaded.config == checkpoint.config
    assert loaded.class_names == CLASS_NAMES
    assert loaded.lineage == checkpoint.lineage
    assert list(loaded.state) == list(checkpoint.state)
    for name, tensor in checkpoint.state.items():
        assert loaded.state[name].dtype == tensor.dtype
        torch.testing.assert_close(loaded.state[name], tensor, rtol=0, atol=0)
    model = loaded.build()
    assert not model.training
    shapes = 24.0 * torch.tensor([[2**0.5, 0.5**0.5], [1.0, 1.0], [0.5**0.5, 2**0.5]]) * 1.1051709  # e^0.1
    torch.testing.assert_close(model.anchors.shapes().detach(), shapes)


def test_load_checkpoint__of_a_time_before_a_setting_answers_as_it_did_then(saved: Path) -> None:
    document = torch.load(saved, weights_only=True)
    header = json.loads(document["header"])
    assert header["config"].pop("sigma_rule") == "cluster"
    torch.save({**document, "header": json.dumps(header)}, saved)
    assert load_checkpoint(saved).config == tiny_config(sigma_rule="own")


def test_save_checkpoint__leaves_no_temporary_file(saved: Path) -> None:
    assert [path.name for path in saved.parent.iterdir()] == ["model.pt"]


def test_load_checkpoint__missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_checkpoint(tmp_path / "model.pt")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.99])
def test_load_checkpoint__truncated(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ArtifactError, match="truncated"):
        load_checkpoint(saved)


@pytest.mark.filterwarnings("ignore")  # torch may warn of an odd pickle before it fails
def test_load_checkpoint__flipped_bytes_never_raise_anything_else(saved: Path) -> None:
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    edge = 6000  # names, pickle and directory lie at both ends; the middle is numbers
    for _ in range(40):
        damaged = bytearray(content)
        for position in rng.integers(0, edge, 3):
            damaged[position if rng.random() < 0.5 else len(content) - 1 - position] ^= int(rng.integers(1, 256))
        saved.write_bytes(damaged)
        try:
            load_checkpoint(saved)
        except PtedgeError:
            continue


def test_load_checkpoint__text_file(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_text("this is no checkpoint\n")
    with pytest.raises(ArtifactError, match="cannot be read as a checkpoint"):
        load_checkpoint(tmp_path / "model.pt")


def test_load_checkpoint__another_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ArtifactError, match="cannot be read as a checkpoint"):
        load_checkpoint(tmp_path / "model.pt")


@pytest.mark.parametrize("document", [{"model": torch.zeros(2)}, [1, 2], torch.zeros(3), {"format": "other"}])
def test_load_checkpoint__another_torch_file(tmp_path: Path, document: Any) -> None:
    torch.save(document, tmp_path / "model.pt")
    with pytest.raises(ArtifactError, match="is not a ptedge-checkpoint file"):
        load_checkpoint(tmp_path / "model.pt")


def test_read_document__resume_state_is_no_checkpoint(tmp_path: Path) -> None:
    torch.save({"format": "ptedge-resume", "step": 3}, tmp_path / "last.pt")
    with pytest.raises(ArtifactError, match=r"is not a ptedge-checkpoint file \(it says 'ptedge-resume'\)"):
        load_checkpoint(tmp_path / "last.pt")
    assert read_document(tmp_path / "last.pt", "ptedge-resume")["step"] == 3


class _Attack:
    """Pickles to a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("as_torch_file", [True, False])
def test_load_checkpoint__code_in_the_file_does_not_run(tmp_path: Path, as_torch_file: bool) -> None:
    trap = tmp_path / "trap"
    document = {"format": "ptedge-checkpoint", "version": 1, "header": "{}", "state": _Attack(trap)}
    if as_torch_file:
        torch.save(document, tmp_path / "model.pt")
    else:
        (tmp_path / "model.pt").write_bytes(pickle.dumps(document, protocol=2))
    with pytest.raises(ArtifactError):
        load_checkpoint(tmp_path / "model.pt")
    assert not trap.exists()


def _rewrite(path: Path, **changes: Any) -> None:
    document = torch.load(path, weights_only=True)
    torch.save({**document, **changes}, path)


def test_load_checkpoint__newer_version(saved: Path) -> None:
    _rewrite(saved, version=99)
    with pytest.raises(ArtifactError, match=r"version 99.*Update ptedge"):
        load_checkpoint(saved)


@pytest.mark.parametrize(
    "header",
    [
        "not json",
        "{}",
        json.dumps({"config": {"no_such_setting": 1}, "class_names": ["a"], "lineage": {}}),
        json.dumps({"config": {"input_size": [100, 100]}, "class_names": ["a"], "lineage": {}}),
        json.dumps({"config": {}, "class_names": None, "lineage": {}}),
        json.dumps({"config": {}, "class_names": ["a"], "lineage": {}, "calibration": [1]}),
        json.dumps({"config": {}, "class_names": ["a"], "lineage": {}, "calibration": {"scale": [1, 1, 0, 1]}}),
        3,
    ],
)
def test_load_checkpoint__damaged_header(saved: Path, header: Any) -> None:
    _rewrite(saved, header=header)
    with pytest.raises(ArtifactError, match="damaged checkpoint"):
        load_checkpoint(saved)


def test_load_checkpoint__calibration_is_kept_beside_the_weights(checkpoint: Checkpoint, tmp_path: Path) -> None:
    given = SideCalibration((0.1, 0.0, -0.1, 0.0), (2.0, 1.0, 1.0, 0.5), {"0.9": (1.0, 2.0, 3.0, 4.0)})
    save_checkpoint(tmp_path / "c.pt", dataclasses.replace(checkpoint, calibration=given))
    loaded = load_checkpoint(tmp_path / "c.pt")
    assert loaded.calibration == given
    assert loaded.state.keys() == checkpoint.state.keys()
    model = loaded.build()
    torch.testing.assert_close(model.side_offset, torch.tensor(given.offset))
    torch.testing.assert_close(model.sigma_scale, torch.tensor(given.scale))


def test_load_checkpoint__written_before_there_were_calibrations(checkpoint: Checkpoint, saved: Path) -> None:
    header = json.loads(torch.load(saved, weights_only=True)["header"])
    assert set(header) == {"config", "class_names", "lineage"}  # as then, where there is none
    assert load_checkpoint(saved).calibration is None and not load_checkpoint(saved).build().calibrated


def test_build__weights_of_another_detector(checkpoint: Checkpoint) -> None:
    with pytest.raises(ArtifactError, match="do not fit"):
        Checkpoint(checkpoint.config, ("a", "b", "c"), checkpoint.state).build()


def test_load_tensors__what_our_reader_refuses_never_reaches_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[Any] = []
    monkeypatch.setattr(torch, "load", lambda *arguments, **_: reached.append(arguments))
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "script.pt"))
    torch.save(torch.nn.Linear(1, 1), tmp_path / "module.pt")
    torch.save({"w": torch.zeros(1).expand(1 << 40)}, tmp_path / "expanded.pt")
    torch.save({"w": torch.zeros(1)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (tmp_path / "zeros.pt").symlink_to("/dev/zero")
    for name, words in (
        ("script.pt", "it is a program"),
        ("module.pt", "more than tensors and plain values"),
        ("expanded.pt", "with 1 numbers"),
        ("old.pt", "not in the form"),
        ("zeros.pt", "a device, not a file"),
    ):
        with pytest.raises(ArtifactError, match=words):
            load_tensors(tmp_path / name, "checkpoint", "Give another")
    assert reached == []


def test_load_tensors__legacy_where_it_is_asked_for(tmp_path: Path) -> None:
    state = {"w": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(3)}
    torch.save(state, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    found = load_tensors(tmp_path / "old.pth", "weight file", "Give another", legacy=True)
    assert torch.equal(found["w"], state["w"]) and int(found["n"]) == 3


def test_torch_load__has_one_caller() -> None:
    """Others go through load_tensors, which checks first."""
    callers = [name_of(path) for path in FILES if "torch.load(" in path.read_text("utf-8")]
    assert callers == ["ptedge/artifacts/checkpoint.py"]
