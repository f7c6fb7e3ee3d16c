"""Batches on the device: values, types and memory layout."""

from __future__ import annotations

import cv2
import pytest
import torch

from ptedge.training.batches.batch import SourceBatch
from ptedge.training.device import flushes_denormals, prepared_torch, to_device
from ptedge.training.losses.source import ImageLabels


def test_to_device__bytes_become_floats_and_labels_follow() -> None:
    images = torch.randint(0, 256, (2, 3, 4, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    boxes, nothing = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.zeros(0, 4)
    given = SourceBatch(images, [ImageLabels(boxes, torch.tensor([1]), nothing)] * 2)
    moved, labels = to_device(given, torch.device("cpu"))
    assert moved.dtype == torch.float32 and moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved, images.float()) and images.is_contiguous()
    assert all(torch.equal(one.boxes, boxes) and one.labels.tolist() == [1] for one in labels)


def settings_of_process() -> tuple[int, bool, bool, str]:
    return (
        cv2.getNumThreads(),
        flushes_denormals(),
        torch.backends.cudnn.benchmark,
        torch.get_float32_matmul_precision(),
    )


@pytest.mark.parametrize("flushed", [False, True])
def test_prepared_torch__the_process_is_afterwards_as_it_was(flushed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_flush_denormal(flushed)
    try:
        before = settings_of_process()
        with pytest.raises(KeyboardInterrupt), prepared_torch(3):
            assert cv2.getNumThreads() == 1 and flushes_denormals()
            assert torch.initial_seed() == 3
            raise KeyboardInterrupt
        assert settings_of_process() == before and flushes_denormals() is flushed
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
        with prepared_torch(3) as device:
            assert device == torch.device("cuda", 0) and torch.backends.cudnn.benchmark
        assert settings_of_process() == before
    finally:
        torch.set_flush_denormal(False)


def test_flushes_denormals__as_torch_computes() -> None:
    small = torch.tensor(1e-40)
    try:
        for on in (True, False):
            torch.set_flush_denormal(on)
            assert flushes_denormals() is on and ((small * 0.5).item() == 0.0) is on
    finally:
        torch.set_flush_denormal(False)
