"""A disk that fills up in the midst of a checkpoint: one sentence, and the checkpoint before is as it was."""

from __future__ import annotations

import builtins
import errno
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config
from training_shell import Shell, fails

from ptedge.artifacts.checkpoint import Checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import OutputError
from ptedge.training.run_folder import RunFolder
from ptedge.training.state import read_state, state_of


class Disk:
    """Stands in for ``open`` in ptedge.files: files whose name has ``part`` in it take ``room`` bytes and no more."""

    def __init__(self, room: int, part: str) -> None:
        self.room, self.part, self.written = room, part, 0

    def open(self, path: Any, mode: str = "r", **options: Any) -> Any:
        file = builtins.open(path, mode, **options)  # noqa: SIM115
        if self.part in str(path):
            write = file.write

            def limited(data: Any) -> int:
                self.written += len(data)
                if self.written > self.room:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return int(write(data))

            return _File(file, limited)
        return file


class _File:
    def __init__(self, file: Any, write: Any) -> None:
        self.file, self.write = file, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


def save(folder: RunFolder, model: ProbabilisticFasterRCNN, step: int) -> None:
    folder.save(Checkpoint(tiny_config(), CLASS_NAMES, state_of(model)), {"step": step, "student": state_of(model)})


@pytest.mark.parametrize("part", ["model.pt", "last.pt"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_save__full_disk_leaves_the_checkpoint_before(
    model: ProbabilisticFasterRCNN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, share: float
) -> None:
    folder = RunFolder(tmp_path, resume=False)
    save(folder, model, 5)
    before = {path.name: path.read_bytes() for path in (folder.model, folder.last)}
    disk = Disk(int(share * len(before[part])), f".{part}.")
    monkeypatch.setattr("ptedge.files.open", disk.open, raising=False)
    with torch.no_grad():
        model.roi_head.fc1.weight.add_(1.0)
    with pytest.raises(OutputError, match=f"cannot write .*{part}: the disk is full. Free some space"):
        save(folder, model, 6)
    assert (tmp_path / part).read_bytes() == before[part]
    assert not list(tmp_path.glob(".*"))
    assert read_state(RunFolder(tmp_path, resume=True).last)["step"] == 5


def test_train__full_disk_is_one_sentence_and_the_run_goes_on_later(
    ptedge: Shell, source_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert ptedge.train(source_data, run, steps=2)[0] == 0
    size = (run / "last.pt").stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr("ptedge.files.open", Disk(size // 2, ".last.pt.").open, raising=False)
        status, err = ptedge.train(source_data, run, "--resume", steps=4, sets=("checkpoint_every=1",))
        assert status == 1 and "Traceback" not in err
        assert err.splitlines()[-1].startswith("ptedge: cannot write") and "the disk is full" in err
    status, err = ptedge.train(source_data, run, "--resume", steps=4)
    assert status == 0, err
    fails(ptedge.train(source_data, run), "already holds a run")
