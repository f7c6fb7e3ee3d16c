"""Where a run computes: torch made ready, and batches brought to the device."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import cv2
import torch
from torch import Tensor

from . import distributed
from .batches.batch import SourceBatch
from .losses.source import ImageLabels


@contextmanager
def prepared_torch(seed: int) -> Iterator[torch.device]:
    """Seed torch, pick the device, and let it be fast; at the end all but the seed is as it was.

    On a CPU, small gradients become denormal numbers, which convolutions handle many times slower than zeros
    (measured: a step takes a quarter of the time with them flushed), so they are flushed to zero, by this thread and by
    those it starts: a thread keeps for good what it was started with. On a GPU, input sizes are fixed, so the fastest
    convolution is looked for once; float32 products use TF32 (ten bits of mantissa) where the GPU has it.

    Args:
        seed: of torch's generators.

    Yields:
        The device that computes.
    """
    threads, flushed, chosen = cv2.getNumThreads(), flushes_denormals(), torch.backends.cudnn.benchmark
    products = torch.get_float32_matmul_precision()
    # OpenCV's threads do not survive the fork that starts workers, and a worker that then sets their number hangs.
    # Images are read here before workers start, so there must be no such threads
    cv2.setNumThreads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    try:
        if torch.cuda.is_available():
            device = torch.device("cuda", distributed.local_rank())
            torch.cuda.set_device(device)
            torch.backends.cudnn.benchmark = True
            torch.set_float32_matmul_precision("high")
            yield device
        else:
            yield torch.device("cpu")
    finally:
        cv2.setNumThreads(threads)
        torch.set_flush_denormal(flushed)
        torch.backends.cudnn.benchmark = chosen
        torch.set_float32_matmul_precision(products)


def flushes_denormals() -> bool:
    """Whether this thread takes numbers below the smallest normal one for zero."""
    return sys.float_info.min / 2 == 0.0


def to_device(batch: SourceBatch, device: torch.device) -> tuple[Tensor, list[ImageLabels]]:
    """Images (float, channels last) and labels of a batch on the model's device."""
    labels = [
        ImageLabels(*(x.to(device, non_blocking=True) for x in (one.boxes, one.labels, one.ignore)))
        for one in batch.labels
    ]
    return image_tensor(batch.images, device), labels


def image_tensor(images: Tensor, device: torch.device) -> Tensor:
    """uint8 images as float 0..255 on the device, in the memory layout in which convolutions run fastest."""
    # as bytes to the device, there to float: a quarter of the traffic
    return images.to(device, non_blocking=True).to(dtype=torch.float32, memory_format=torch.channels_last)
