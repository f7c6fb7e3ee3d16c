"""What AP50 and AP75 mean: the conventions under which published numbers were taken. They differ by points.

Three things vary: how the precision-recall curve becomes a number, whether images without objects count (there every
detection is a false alarm), and what becomes of a detection whose best box is taken. AP, the mean over IoU 0.50 to
0.95, is COCO's under all of them, over the images that the convention counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptedge.config import require_one_of
from ptedge.data.dataset import Sample
from ptedge.detections import Detections


@dataclass(frozen=True)
class Convention:
    """How AP50 and AP75 are taken.

    Attributes:
        name: as ``--convention`` has it.
        all_point: the area under the precision envelope (VOC 2010 on); otherwise the mean of it at the 101 recalls
            0, 0.01, ... 1 (COCO).
        empty_images: images without a box to find count, too; otherwise they and all detections in them are left out.
        next_best: a detection whose best box is taken may have the next one that overlaps enough, as in pycocotools;
            otherwise it is wrong at once, as in the VOC development kit.
        text: one line for people.
    """

    name: str
    all_point: bool
    empty_images: bool
    next_best: bool
    text: str


VOC = Convention("voc", True, True, True, "VOC all-point, images without objects included")
_OTHERS = (
    Convention("voc-labelled", True, False, True, "VOC all-point, images without objects left out"),
    Convention("coco", False, True, True, "COCO 101-point, images without objects included"),
    Convention("devkit", True, True, False, "VOC development kit, images without objects included"),
    Convention("devkit-labelled", True, False, False, "VOC development kit, images without objects left out"),
)
CONVENTIONS = {convention.name: convention for convention in (VOC, *_OTHERS)}


def convention_named(name: str) -> Convention:
    """The convention of a name.

    Raises:
        ValueError: there is none; the text lists those there are.
    """
    require_one_of("convention", name, tuple(CONVENTIONS))
    return CONVENTIONS[name]


def counted_images(
    detections: Sequence[Detections], samples: Sequence[Sample], convention: Convention
) -> tuple[list[Detections], list[Sample]]:
    """The images that a convention counts.

    Args:
        detections: one an image.
        samples: the same images in the same order.
        convention: without ``empty_images``, an image that has ignore regions only is left out as well.
    """
    pairs = zip(detections, samples, strict=True)
    kept = [pair for pair in pairs if convention.empty_images or not pair[1].ignore.all()]
    return [found for found, _ in kept], [sample for _, sample in kept]
