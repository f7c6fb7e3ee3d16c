"""Settings for training on a GPU of a given memory: the paper's 16 images a step, in as many parts as it takes.

Sizes are for 608 x 1088 input with VGG16 or EfficientNet-Lite0 in bfloat16, for adaptation with source, which holds the
features of a source and a target part at once. Smaller inputs leave room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .config import PAPER_BATCH, OptimConfig

# name -> (images a part, checkpointing)
PRESETS: dict[str, tuple[int, bool]] = {
    "8gb": (4, True),
    "12gb": (8, False),
    "24gb": (16, False),
    "agx": (8, False),  # Jetson AGX Orin: memory is shared with the CPU
}


def preset_values(name: str, defaults: Mapping[str, Any], usual: OptimConfig) -> dict[str, Any]:
    """What a preset sets, as tables of a configuration.

    Args:
        name: a key of ``PRESETS``.
        defaults: what stands in for the command's own defaults already; it stays where the preset sets nothing.
        usual: the optimiser's settings without the preset: their learning rates are scaled to the preset's step.
    """
    batch, checkpointing = PRESETS[name]
    factor = PAPER_BATCH / (usual.batch * usual.accumulate)
    optim = {
        "batch": batch,
        "accumulate": PAPER_BATCH // batch,
        "lr": usual.lr * factor,
        "anchor_lr": usual.anchor_lr * factor,
        "lr_scaling": "linear",  # with several processes, steps are larger
    }
    merged = dict(defaults)
    merged.update(precision="bf16", checkpointing=checkpointing, optim={**defaults.get("optim", {}), **optim})
    return merged


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
    told = [f"{key}={str(values[key]).lower()}" for key in ("precision", "checkpointing")]
    told += [f"optim.{key}={value:g}" for key, value in values["optim"].items() if not isinstance(value, str)]
    told += [f"optim.lr_scaling={values['optim']['lr_scaling']}"]
    return f"preset {name}: {', '.join(told)}"
