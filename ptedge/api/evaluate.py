"""``ptedge.evaluate``: as ``ptedge eval``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ptedge.api.model import Model, load
from ptedge.commands.evaluation import EvaluationOptions, score_model
from ptedge.detections import Detections
from ptedge.files import make_output_folder
from ptedge.scores.convention import VOC
from ptedge.verbosity import quiet as silence


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on a data set.

    Attributes:
        ap50: average precision at IoU 0.5, 0 to 1; ``None`` where the data has no boxes.
        ap75: the same at IoU 0.75.
        ap: COCO's mean over IoU 0.50 to 0.95.
        coverage: share of true sides within 1 sigma, 0.683 if sigma is true; ``None`` without true positives.
        document: everything, as ``ptedge eval --json`` prints it.
        detections: of every image, in the order of the data set.
    """

    ap50: float | None
    ap75: float | None
    ap: float | None
    coverage: float | None
    document: Mapping[str, Any] = field(repr=False)
    detections: tuple[Detections, ...] = field(repr=False)


def evaluate(
    model: Model | str | PathLike[str],
    data: str | PathLike[str],
    *,
    split: str | None = None,
    out: str | PathLike[str] | None = None,
    backend: str = "auto",
    limit: int | None = None,
    threads: int | None = None,
    trust: str | PathLike[str] | tuple[str | PathLike[str], ...] = (),
    pictures: int = 12,
    convention: str = VOC.name,
    quiet: bool = False,
) -> Evaluation:
    """Score a model on labelled data, as ``ptedge eval`` does.

    Args:
        model: loaded, or checkpoint, bundle, ONNX file or engine, for which backend, threads and trust count.
        data: COCO json, Pascal VOC, YOLO or KITTI folder, or a TOML description.
        split: part of it; ``None`` for val, else test.
        out: folder for results.json, detections.json, pictures of the worst images and sides.png.
        backend: what runs a bundle.
        limit: images at most.
        threads: CPU threads; ``None`` for one a core.
        trust: files of public keys that a bundle must be signed with.
        pictures: of the worst images, into ``out``.
        convention: rule of AP: ``voc``, ``voc-labelled``, ``coco``, ``devkit`` or ``devkit-labelled`` (docs/eval.md).
        quiet: tell nothing on stderr.

    Raises:
        PtedgeError: the model, the data or the output are at fault.
    """
    place = None if out is None else make_output_folder(Path(out))
    options = EvaluationOptions(split, place, limit, pictures, convention)
    with silence(quiet), ExitStack() as opened:
        if not isinstance(model, Model):
            model = opened.enter_context(load(model, backend=backend, threads=threads, trust=trust))
        document, result = score_model(model.predictor, model.path, Path(data), options)
    ap50, ap75, ap = (document[key] for key in ("AP50", "AP75", "AP"))
    return Evaluation(ap50, ap75, ap, document["sigma"].get("coverage_1"), document, result.detections)
