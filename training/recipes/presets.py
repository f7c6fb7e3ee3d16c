"""Settings by name: the paper's recipe, and the same in as many parts as fit a GPU of a given memory.

Sizes are for 608 x 1088 input with VGG16 or EfficientNet-Lite0 in bfloat16, for adaptation with source, which holds the
features of a source and a target part at once. Smaller inputs leave room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptedge.config import merged_tables
from ptedge.errors import ConfigError

from ..config import PAPER_BATCH, OptimConfig

PAPER = "paper"
EDGE = "edge"
# name -> (images a part, checkpointing)
PRESETS: dict[str, tuple[int, bool]] = {
    "8gb": (4, True),
    "12gb": (8, False),
    "24gb": (16, False),
    "agx": (8, False),  # Jetson AGX Orin: memory is shared with the CPU
}

# A detector for a CPU or a small GPU: light ROI head, taught by a full one, and half of the proposals. How it trains
# is the recipe's to choose (docs/results.md, "A light head").
_EDGE: dict[str, Any] = {
    "model": {"roi_channels": 64, "roi_hidden": 256, "rpn_test_top_n": [600, 150]},
    "distill": {"weight": 1.0},
    "optim": {"roi_rate": 3.0},
}

# The paper's schedule at a batch of 4 instead of 16, by what is done. Every key that a recipe may choose is set.
_OPTIM = {"optimizer": "sgd", "steps": 4000, "batch": 4, "lr": 0.004, "weight_decay": 1e-4, "warmup": 400}
_OPTIM |= {"schedule": "constant"}
_TRAIN = {
    "view": "strong",
    "model": {"anchor_sizes": [128.0, 256.0, 512.0]},
    "optim": {**_OPTIM, "anchor_lr": 0.0},
    "sampling": {"roi_count": 128},
}
_ADAPT = {"optim": {**_OPTIM, "anchor_lr": 1e-3}, "teacher": {"ema": 0.9996}, "sampling": {"roi_count": 128}}
# Nothing but the teacher holds the student: lower learning rate, AdaBN first, weights of box terms held in [0, 1]
# (method.md section 8)
_SOURCE_FREE = merged_tables(
    _ADAPT,
    {"optim": {"lr": 0.0004, "anchor_lr": 0.0001}, "teacher": {"adabn": True}, "pseudo": {"clamp_focal": True}},
)
KINDS: Mapping[str, Mapping[str, Any]] = {"train": _TRAIN, "adapt": _ADAPT, "source_free": _SOURCE_FREE}


def preset_values(name: str, kind: str) -> dict[str, Any]:
    """What a preset sets, as tables of a configuration.

    Args:
        name: ``paper``, ``edge`` or a key of ``PRESETS``.
        kind: ``train``, ``adapt`` (with source) or ``source_free``.

    Raises:
        ConfigError: ``edge`` for an adaptation, whose model is there already.
    """
    if name == EDGE:
        if kind != "train":
            raise ConfigError(
                "--preset edge makes the model of ptedge train a light one; an adaptation keeps the head of its "
                "checkpoint, so leave --preset out"
            )
        return _EDGE
    values = dict(KINDS[kind])
    if name == PAPER:
        return values
    usual = values["optim"]
    batch, checkpointing = PRESETS[name]
    factor = PAPER_BATCH / usual["batch"]
    optim = {
        "batch": batch,
        "accumulate": PAPER_BATCH // batch,
        "lr": usual["lr"] * factor,
        "anchor_lr": usual["anchor_lr"] * factor,
        "lr_scaling": "linear",  # with several processes, steps are larger
    }
    return merged_tables(values, {"precision": "bf16", "checkpointing": checkpointing, "optim": optim})


def preset_sets(name: str, usual: OptimConfig) -> list[str]:
    """A preset for settings that are complete: the same step in parts that fit, as ``key=value``; rates stay.

    Args:
        name: a key of ``PRESETS``.
        usual: the optimiser's settings; images a step stay.
    """
    batch, checkpointing = PRESETS[name]
    images = usual.batch * usual.accumulate
    part = max(size for size in range(1, images + 1) if images % size == 0 and size <= batch)
    sets = [f"optim.batch={part}", f"optim.accumulate={images // part}", 'precision="bf16"']
    return [*sets, f"checkpointing={str(checkpointing).lower()}"]


def describe_preset(name: str, values: Mapping[str, Any]) -> str:
    """One line of what :func:`preset_values` gave, for the user."""
    return f"preset {name}: {', '.join(_told(values))}"


def _told(values: Mapping[str, Any], table: str = "") -> list[str]:
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _told(value, f"{table}{key}.")
        elif isinstance(value, float):
            lines.append(f"{table}{key}={value:g}")
        else:
            lines.append(f"{table}{key}={str(value).lower() if isinstance(value, bool) else value}")
    return lines
