"""Corrupted sets of labelled pictures, and a model's answers on them and on frames without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.estimate import LabelFreeFit
from ptedge.data.dataset import Dataset, Sample
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import InputError
from ptedge.frames.images import read_image
from ptedge.frames.source import FrameIndex
from ptedge.preprocess import Letterbox
from ptedge.scores.label_free import Answers, Signs, signs_of
from ptedge.scores.label_free_fit import fit_label_free, labelled_set

from .corruptions import Corruption, corrupt, corruption_sets
from .views import look_twice

Progress = Callable[[int, int], None]


def learn(
    model: ProbabilisticFasterRCNN,
    dataset: Dataset,
    images: int,
    seed: int,
    *,
    sets: Sequence[Corruption] | None = None,
    progress: Progress | None = None,
) -> LabelFreeFit:
    """Corrupt labelled pictures, look at them with and without their labels, and join both.

    Args:
        model: in eval mode, without a calibration of its sides.
        dataset: labelled pictures that the model has not learned from.
        images: in each set, drawn anew for it; at most those there are.
        seed: of the draws.
        sets: corruptions; ``None`` for :func:`~ptedge.training.estimate.corruptions.corruption_sets`.
        progress: called after each set with (sets done, sets in all).

    Raises:
        InputError: unreadable pictures, or too few objects found to learn from.
    """
    wanted = sets if sets is not None else corruption_sets()
    inputs = _Inputs(dataset, model.config.input_size)
    results = []
    for number, corruption in enumerate(wanted):
        rng = np.random.default_rng([seed, number])
        drawn = rng.choice(len(dataset), size=min(images, len(dataset)), replace=False)
        answers, samples = [], []
        for index in drawn.tolist():
            image, sample, content = inputs.get(index)
            changed, boxes = corrupt(image, sample.boxes, corruption, rng)
            answers.append(look_twice(model, changed, content))
            samples.append(replace(sample, boxes=boxes))
        results.append(labelled_set(corruption.kind, answers, samples, dataset.class_names))
        if progress is not None:
            progress(number + 1, len(wanted))
    return fit_label_free(results, model.config.sigma_rule)


def look_at_frames(
    model: ProbabilisticFasterRCNN, frames: FrameIndex, count: int, seed: int
) -> tuple[Signs, dict[str, str]]:
    """Signs of a model on frames without labels.

    Args:
        model: in eval mode, without a calibration of its sides.
        frames: to draw from.
        count: frames, drawn by seed; at most those there are.
        seed: of the draw.

    Returns:
        The signs, and name and reason of each frame that could not be read.
    """
    rng = np.random.default_rng([seed, len(frames)])
    drawn = np.sort(rng.choice(len(frames), size=min(count, len(frames)), replace=False))
    answers: list[Answers] = []
    skipped: dict[str, str] = {}
    for index in drawn.tolist():
        try:
            image = frames.read(index)
        except InputError as error:
            skipped[frames.name(index)] = str(error)
            continue
        letterbox = Letterbox(image.shape[1], image.shape[0], *model.config.input_size)
        answers.append(look_twice(model, letterbox.image(image), letterbox.content))
    return signs_of(answers), skipped


class _Inputs:
    """Labelled pictures at the size of the network's input, read once."""

    def __init__(self, dataset: Dataset, input_size: tuple[int, int]) -> None:
        self.dataset = dataset
        self.input_size = input_size
        self.read: dict[int, tuple[NDArray[np.uint8], Sample, tuple[int, int]]] = {}

    def get(self, index: int) -> tuple[NDArray[np.uint8], Sample, tuple[int, int]]:
        if index not in self.read:
            sample = self.dataset.samples[index]
            image = read_image(sample.path)
            letterbox = Letterbox(image.shape[1], image.shape[0], *self.input_size)
            height, width = self.input_size
            placed = replace(sample, boxes=letterbox.boxes(sample.boxes), width=width, height=height)
            self.read[index] = (letterbox.image(image), placed, letterbox.content)
        return self.read[index]
