"""The terms of a loss as runs log them: what each is called and measured in."""

from __future__ import annotations

CLASSES = "cross-entropy (nats)"
BOXES = "neg. log-likelihood (nats)"

# each is logged for the source and, with these prefixes, for the target and for labelled frames of it
SUPERVISED = {
    "rpn_cls": ("RPN objectness", CLASSES),
    "rpn_box": ("RPN boxes", BOXES),
    "roi_cls": ("ROI classes", CLASSES),
    "roi_box": ("ROI boxes", BOXES),
}
# of a wide ROI head that teaches the model's own, and what it teaches
DISTILLATION = {
    "full_roi_cls": "Wide head, ROI classes",
    "full_roi_box": "Wide head, ROI boxes",
    "distill_cls": "Taught by the wide head, classes",
    "distill_box": "Taught by the wide head, boxes",
}
TARGET = "target_"
LABELLED = "labelled_"
ALIGNMENT = {
    "align_source_local": "Source, local domain",
    "align_target_local": "Target, local domain",
    "align_source_global": "Source, global domain",
    "align_target_global": "Target, global domain",
    "align_image_class": "Classes in the picture",
    "align_source_instance": "Source, domain of instances",
    "align_target_instance": "Target, domain of instances",
}
LOSSES = frozenset(
    {"loss", *ALIGNMENT, *DISTILLATION, *(prefix + term for prefix in ("", TARGET, LABELLED) for term in SUPERVISED)}
)
OF_THE_RUN = frozenset({"lr", "grad_norm", "step_seconds", "data_wait", "images_per_second", "memory_mb"})


def heading(key: str) -> str:
    """Under which a logged number stands: ``loss``, ``run`` or ``monitor``."""
    if key in LOSSES:
        return "loss"
    return "run" if key in OF_THE_RUN else "monitor"
