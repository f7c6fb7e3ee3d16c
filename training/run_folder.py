"""The RUN folder: model.pt, last.pt, config.toml, metrics.jsonl, summary.json. Every file is whole or absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
import torch
from torch import Tensor

from ptedge.checkpoint import Checkpoint, read_document, save_checkpoint
from ptedge.config import to_dict
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import atomic_write, make_output_folder, write_error, write_json

from .optim import restore_optimizer

RESUME_FORMAT = "ptedge-resume"


class RunFolder:
    """One run on disk.

    Args:
        path: the folder.
        resume: continue what is there; otherwise a folder that already holds a run is refused.

    Raises:
        OutputError: not writable, or it holds a run and ``resume`` is off.
        ArtifactError: nothing to resume.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = make_output_folder(path)
        self.resume = resume
        if resume and not self.last.exists():
            raise ArtifactError(f"{path} holds no last.pt to resume from. Leave out --resume to start a new run")
        if not resume and (self.last.exists() or self.model.exists()):
            raise OutputError(f"{path} already holds a run. Choose another --out, or continue it with --resume")

    @property
    def model(self) -> Path:
        """The checkpoint to deploy."""
        return self.path / "model.pt"

    @property
    def last(self) -> Path:
        """The state to resume from."""
        return self.path / "last.pt"

    def write_config(self, config: Any) -> None:
        """Write config.toml with every key."""
        with atomic_write(self.path / "config.toml", "w") as file:
            file.write(tomli_w.dumps(to_dict(config)))

    def start_metrics(self, first_step: int) -> None:
        """Begin metrics.jsonl, or cut off lines from steps that will be repeated, and a torn last line."""
        path = self.path / "metrics.jsonl"
        kept = []
        if first_step and path.exists():
            for line in path.read_text("utf-8").splitlines():
                try:
                    if json.loads(line)["step"] <= first_step:
                        kept.append(line + "\n")
                except (json.JSONDecodeError, KeyError):
                    continue
        with atomic_write(path, "w") as file:
            file.writelines(kept)

    def log(self, values: dict[str, Any]) -> None:
        """Append one line to metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")
        except OSError as error:
            raise write_error(path, error) from None

    def save(self, checkpoint: Checkpoint, state: dict[str, Any]) -> None:
        """Write model.pt and then last.pt.

        Args:
            checkpoint: what to deploy.
            state: everything needed to go on: tensors and plain values.
        """
        save_checkpoint(self.model, checkpoint)
        with atomic_write(self.last) as file:
            torch.save({"format": RESUME_FORMAT, **state}, file)

    def load_state(self, identity: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Read last.pt.

        Args:
            identity: what must be the same for the run to go on, by the names under which :meth:`save` was given it:
                ``command``, ``kind``, ``parent``, ``classes``, ``optimizer_name``, ``model``. A name that the file
                lacks is passed over.

        Raises:
            ArtifactError: unreadable, or a run of something else.
        """
        state = read_document(self.last, RESUME_FORMAT)
        for name, wanted in (identity or {}).items():
            found = state.get(name, wanted)
            if found != wanted:
                raise ArtifactError(f"cannot resume {self.path}: {_difference(name, found, wanted)}")
        return state

    def restore(self, state: Mapping[str, Any], optimizer: torch.optim.Optimizer, **models: torch.nn.Module) -> int:
        """Put what :meth:`load_state` gave back in place.

        Args:
            state: of last.pt.
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
                f"cannot resume {self.path}: the state in last.pt is incomplete or of a model with other settings. "
                f"Start a new run with another --out"
            ) from None

    def read_summary(self) -> dict[str, Any]:
        """summary.json as it is; empty when there is none or it is broken."""
        try:
            summary = json.loads((self.path / "summary.json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return summary if isinstance(summary, dict) else {}

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Write summary.json."""
        write_json(self.path / "summary.json", summary)


def _difference(name: str, found: Any, wanted: Any) -> str:
    """What keeps a run from going on, and what to do."""
    anew = "or start a new run with another --out"
    if name == "command":
        return f"it is a run of ptedge {found}. Resume it with that command, {anew}"
    if name == "kind":
        mode = "--source-free" if found == "source_free" else "--source DATA"
        return f"it was begun with {mode}. Resume it in the same way, {anew}"
    if name == "parent":
        return f"it adapts another checkpoint (sha256 {str(found)[:12]}). Give that one, {anew}"
    if name == "classes":
        return f"it learns {found}, but the data has {wanted} (names and order count). Give its data, {anew}"
    if name == "optimizer_name":
        name = "optim.optimizer"
    if isinstance(found, dict):
        changed = [key for key in wanted if key in found and found[key] != wanted[key]]
        if changed:
            name, found, wanted = f"{name}.{changed[0]}", found[changed[0]], wanted[changed[0]]
    return f"{name} is {wanted!r}, but the run has {found!r}. Leave it as it was, {anew}"


def state_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """A copy of a model's state on the CPU, safe from later updates."""
    return {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
