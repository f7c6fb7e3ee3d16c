"""Batches on the device: values, types and memory layout."""

from __future__ import annotations

import torch

from ptedge.training.batches.batch import SourceBatch
from ptedge.training.device import to_device
from ptedge.training.losses.source import ImageLabels


def test_to_device__bytes_become_floats_and_labels_follow() -> None:
    images = torch.randint(0, 256, (2, 3, 4, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    boxes, nothing = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.zeros(0, 4)
    given = SourceBatch(images, [ImageLabels(boxes, torch.tensor([1]), nothing)] * 2)
    moved, labels = to_device(given, torch.device("cpu"))
    assert moved.dtype == torch.float32 and moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved, images.float()) and images.is_contiguous()
    assert all(torch.equal(one.boxes, boxes) and one.labels.tolist() == [1] for one in labels)
