"""What last.pt holds, from which a run goes on: read, checked, and put back in place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ptedge.artifacts.checkpoint import read_document, write_document
from ptedge.detector.config import EARLIER
from ptedge.errors import ArtifactError

from .optim import restore_optimizer

RESUME_FORMAT = "ptedge-resume"
MODES: dict[Any, str] = {"source_free": "--source-free", "few_labels": "--labels FEW", False: "--source-free"}


def state_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """A copy of a model's state on the CPU, safe from later updates."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write last.pt.

    Args:
        path: of the file.
        state: everything needed to go on: tensors and plain values.

    Raises:
        OutputError: not writable, or the disk is full; what was there before is untouched.
    """
    write_document(path, {"format": RESUME_FORMAT, **state})


def read_state(path: Path, identity: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Read last.pt.

    Args:
        path: of the file, in the RUN folder.
        identity: what must be the same for the run to go on, by the names under which it was saved: ``command``,
            ``kind``, ``parent``, ``classes``, ``optimizer_name``, ``model``. A name that the file lacks is passed over.

    Raises:
        ArtifactError: unreadable, or a run of something else.
    """
    state = read_document(path, RESUME_FORMAT)
    for name, wanted in (identity or {}).items():
        found = state.get(name, wanted)
        if isinstance(found, dict):  # settings of the model, which had fewer once
            found = {**{key: value for key, value in EARLIER.items() if key in wanted}, **found}
        if found != wanted:
            raise ArtifactError(f"cannot resume {path.parent}: {_difference(name, found, wanted)}")
    return state


def restore(
    path: Path, state: Mapping[str, Any], optimizer: torch.optim.Optimizer, models: Mapping[str, torch.nn.Module]
) -> int:
    """Put what :func:`read_state` gave back in place.

    Args:
        path: of last.pt, for the sentence of what went wrong.
        state: of it.
        optimizer: takes ``optimizer`` of it.
        models: each takes the entry of its name.

    Returns:
        Steps done.

    Raises:
        ArtifactError: the state is of another model.
    """
    try:
        for name, model in models.items():
            model.load_state_dict(state[name])
        restore_optimizer(optimizer, state["optimizer"])
        return int(state["step"])
    except (KeyError, RuntimeError, TypeError, ValueError):
        raise ArtifactError(
            f"cannot resume {path.parent}: the state in last.pt is incomplete or of a model with other settings. "
            f"Start a new run with another --out"
        ) from None


def _difference(name: str, found: Any, wanted: Any) -> str:
    """What keeps a run from going on, and what to do."""
    anew = "or start a new run with another --out"
    if name == "command":
        return f"it is a run of ptedge {found}. Resume it with that command, {anew}"
    if name in ("kind", "with_source"):
        mode = MODES.get(found, "--source DATA")
        return f"it was begun with {mode}. Resume it in the same way, {anew}"
    if name in ("labels", "teacher_boxes"):
        return f"what --{name.replace('_', '-')} names is not what it was begun with. Give the same, {anew}"
    if name == "parent":
        return f"it adapts another checkpoint (sha256 {str(found)[:12]}). Give that one, {anew}"
    if name == "classes":
        return f"it learns {found}, but the data has {wanted} (names and order count). Give its data, {anew}"
    if name == "optimizer_name":
        name = "optim.optimizer"
    elif isinstance(found, dict):
        changed = [key for key in wanted if key in found and found[key] != wanted[key]]
        if changed:
            name, found, wanted = f"{name}.{changed[0]}", found[changed[0]], wanted[changed[0]]
    return f"{name} is {wanted!r}, but the run has {found!r}. Leave it as it was, {anew}"
