"""How a deployment stands, by what ``ptedge history`` tells, and which checkpoint belongs to what it runs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.errors import ArtifactError, InputError
from ptedge.files import atomic_write, sha256_file
from ptedge.stores.opening import open_store

from .work import Work

CHECKPOINTS = "checkpoints"  # of the site's folder: those that rounds exported, named after their content


@dataclass(frozen=True)
class Standing:
    """A deployment's history.

    Attributes:
        deployment: as commands take it.
        document: of ``ptedge history``; empty where nothing was promoted yet.
    """

    deployment: str
    document: Mapping[str, Any]

    @property
    def version(self) -> str:
        """That runs; empty before the first promotion."""
        return str(self.document.get("version") or "")

    @property
    def proves(self) -> bool:
        """Whether a version on probation has one to go back to; the first version has none, and no probation."""
        return self.document.get("earlier") is not None

    def promotion(self, version: str) -> Mapping[str, Any] | None:
        """The last entry that promoted a version."""
        return self._last("promote", version)

    def promotion_of(self, model_hash: str) -> Mapping[str, Any] | None:
        """The last entry that promoted a bundle of this graph.

        Args:
            model_hash: sha256 of its ONNX file.
        """
        entries = [e for e in self.document.get("entries", ()) if e["action"] == "promote"]
        return next((e for e in reversed(entries) if e["model"].get("model_hash") == model_hash), None)

    def kept(self, version: str) -> Mapping[str, Any] | None:
        """The entry by which a run kept a version after its last promotion; ``None`` for none."""
        kept, promoted = self._last("keep", version), self.promotion(version)
        return kept if kept and promoted and kept["number"] > promoted["number"] else None

    def withdrawn(self, version: str) -> str | None:
        """Why a version was rolled back; ``None`` where it was not."""
        why = self.document.get("withdrawn", {}).get(version)
        return None if why is None else str(why) or "no reason given"

    def _last(self, action: str, version: str) -> Mapping[str, Any] | None:
        entries = self.document.get("entries", ())
        return next((e for e in reversed(entries) if e["action"] == action and e["version"] == version), None)


@dataclass(frozen=True)
class Start:
    """What a round adapts.

    Attributes:
        checkpoint: file of the present model.
        sha256: of it.
        version: that was exported from it; empty for the first model, before anything runs.
        input_size: of that version, ``HxW``; empty as above.
        precision: see ``input_size``.
    """

    checkpoint: str
    sha256: str
    version: str = ""
    input_size: str = ""
    precision: str = ""


def standing_of(work: Work, name: str) -> Standing:
    """Ask a deployment.

    Args:
        work: of the round.
        name: of the deployment, as SITE.toml has it.

    Raises:
        StepFailedError: it cannot be read.
        StoreError: the same.
    """
    deployment = work.place.located(name)
    # ``ptedge history`` refuses a place to which nothing was promoted, as it may be a slip
    if next(iter(open_store(deployment).list("history/")), None) is None:
        return Standing(deployment, {})
    return Standing(deployment, work.ptedge("history", "history", deployment).needed())


def present_model(work: Work) -> Start:
    """The checkpoint of the version that the reference deployment runs, or the first one.

    Raises:
        InputError: no such file; or what runs comes from a checkpoint that the site does not have.
    """
    place = work.place
    first = Path(place.located(place.site.checkpoint))
    standing = standing_of(work, place.site.deploy.reference)
    if not standing.version:
        return Start(str(first), _hash(first))
    entry = standing.promotion(standing.version) or {}
    facts = entry.get("model", {})
    wanted = str(facts.get("checkpoint", ""))
    kept = place.folder / CHECKPOINTS / f"{wanted}.pt"
    for path in (kept, first):
        if path.is_file() and _hash(path) == wanted:
            size, precision = str(facts.get("input_size", "")), str(facts.get("precision", ""))
            return Start(str(path), wanted, standing.version, size, precision)
    raise InputError(
        f"{standing.deployment} runs {standing.version}, made from the checkpoint {wanted[:16] or 'of no name'}, which "
        f"is neither {first} nor in {kept.parent}. Put it there as {wanted or 'SHA256'}.pt, or name it in {place.file}"
    )


def _hash(path: Path) -> str:
    try:
        return sha256_file(path)
    except OSError as error:
        raise InputError(f"the checkpoint {path} cannot be read: {error.strerror}") from None


def keep_checkpoint(folder: Path, model: Path) -> str:
    """Keep a checkpoint under a name after its content, so that what runs can be adapted again.

    Args:
        folder: of the site.
        model: checkpoint of a round.

    Returns:
        Its sha256.

    Raises:
        ArtifactError: it cannot be read.
        OutputError: not writable.
    """
    try:
        digest = sha256_file(model)
    except OSError as error:
        raise ArtifactError(f"{model} cannot be read: {error.strerror}") from None
    kept = folder / CHECKPOINTS / f"{digest}.pt"
    if not kept.exists():
        with atomic_write(kept) as file, open(model, "rb") as original:
            shutil.copyfileobj(original, file)
    return digest
