"""What there is to report on: a run, and where given the bundle made of it and the frames collected with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import is_bundle, open_bundle
from ptedge.commands.describe_bundle import describe_bundle
from ptedge.commands.describe_checkpoint import describe_checkpoint
from ptedge.errors import InputError, PtedgeError
from ptedge.files import parse_json, read_bounded

from ..curves.read import Curves, read_curves

MOST_BENCHMARK = 64 << 20  # bytes
START = Path("checkpoints/step_000000.pt")
NAMES = ("metrics.jsonl", "summary.json", "model.pt")  # a run has one of them at least


@dataclass
class Facts:
    """What was read.

    Attributes:
        run: its folder.
        summary: content of summary.json; empty without one.
        curves: of metrics.jsonl; ``None`` without one.
        config: text of config.toml; empty without one.
        model: what model.pt says of itself; empty without one.
        start: what the checkpoint that the run began with says, where it is found.
        before: that checkpoint's path, or that of the model a few moments into the run; ``None`` where there is none.
        bundle: its folder, where given.
        manifest: of the bundle, as plain values.
        bundle_hash: sha256 of its model.
        collected: folder of collected frames, where given.
        benchmarks: reports of ``ptedge benchmark`` with their paths.
        notes: what could not be read, in words.
    """

    run: Path
    summary: Mapping[str, Any] = field(default_factory=dict)
    curves: Curves | None = None
    config: str = ""
    model: Mapping[str, Any] = field(default_factory=dict)
    start: Mapping[str, Any] = field(default_factory=dict)
    before: Path | None = None
    bundle: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    bundle_hash: str = ""
    collected: Path | None = None
    benchmarks: list[tuple[Path, Mapping[str, Any]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def adapted(self) -> bool:
        """The run adapted a model; otherwise it trained one."""
        return self.summary.get("command") == "adapt" or self.lineage.get("kind", "source") != "source"

    @property
    def before_is_start(self) -> bool:
        """``before`` is what the run kept of its start, not the checkpoint itself."""
        return self.before == self.run / START

    @property
    def lineage(self) -> Mapping[str, Any]:
        """Of model.pt, or of the bundle."""
        return table_of(self.model, "lineage") or table_of(self.manifest, "lineage")

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names by label; empty where nothing tells."""
        for source, key in ((self.summary, "classes"), (self.model, "class_names"), (self.manifest, "class_names")):
            if isinstance(source.get(key), (list, tuple)):
                return tuple(map(str, source[key]))
        return ()


def gather(run: Path, bundle: Path | None, field_folder: Path | None, before: Path | None) -> Facts:
    """Read all that is there; what is damaged is noted, what was named and is none is an error.

    Args:
        run: RUN folder.
        bundle: folder, where given.
        field_folder: FIELD, where given.
        before: checkpoint to compare with, where given.

    Raises:
        InputError: no run, or no checkpoint where one was named.
        ArtifactError: a damaged bundle or checkpoint.
    """
    if not run.is_dir() or not any((run / name).is_file() for name in NAMES):
        raise InputError(f"{run} is no run: none of {', '.join(NAMES)} is in it. Give a RUN of ptedge train or adapt")
    facts = Facts(run, collected=field_folder)
    facts.summary = _json_of(run / "summary.json", facts.notes)
    facts.config = _text_of(run / "config.toml")
    facts.model = _described(run / "model.pt", facts.notes)
    if (run / "metrics.jsonl").is_file():
        try:
            facts.curves = read_curves(run)
        except PtedgeError as error:
            facts.notes.append(str(error))
    if bundle is not None:
        opened = open_bundle(bundle)
        facts.bundle, facts.bundle_hash = bundle, opened.model_hash
        facts.manifest = opened.manifest.to_json()
    _find_before(facts, before)
    _find_benchmarks(facts)
    return facts


def sort_folders(folders: Sequence[Path]) -> tuple[Path | None, Path | None]:
    """Which of the folders named is the bundle, and which the field folder.

    Raises:
        InputError: neither, or two of a kind.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        kind = "field folder" if (folder / "field.json").is_file() else "bundle" if is_bundle(folder) else None
        if kind is None:
            raise InputError(f"{folder} is neither a bundle (manifest.json) nor a field folder (field.json)")
        if kind in found:
            raise InputError(f"{found[kind]} and {folder} are both a {kind}; a report is about one")
        found[kind] = folder
    return found.get("bundle"), found.get("field folder")


def table_of(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table within a table; empty where it is none."""
    value = values.get(name)
    return value if isinstance(value, Mapping) else {}


def _find_before(facts: Facts, named: Path | None) -> None:
    """The checkpoint that the run began with: named, or where the run says, if its hash is the parent's."""
    if named is not None:
        if not named.exists():
            raise InputError(f"{named} does not exist. Give --before the checkpoint that the run began with")
        facts.before = named
        facts.start = describe_checkpoint(named) if named.is_file() else describe_bundle(named)
        return
    parents = facts.lineage.get("parents") or [""]
    recorded = facts.summary.get("checkpoint")
    if isinstance(recorded, str) and Path(recorded).is_file():
        found = _described(Path(recorded), facts.notes)
        if found.get("sha256") == parents[-1]:
            facts.before, facts.start = Path(recorded), found
            return
    kept = facts.run / START
    if kept.is_file():
        facts.before = kept


def _find_benchmarks(facts: Facts) -> None:
    """Reports of ``ptedge benchmark`` in the run and the bundle."""
    for folder in (facts.run, facts.bundle):
        for path in sorted(folder.glob("*.json")) if folder is not None else ():
            if path.name in ("summary.json", "manifest.json", "val_boxes.json"):
                continue
            document = _json_of(path, [])
            if str(document.get("schema", "")).startswith("ptedge.benchmark/"):
                facts.benchmarks.append((path, document))


def _described(path: Path, notes: list[str]) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        return describe_checkpoint(path)
    except (PtedgeError, OSError) as error:
        notes.append(f"{path.name}: {error}")
        return {}


def _json_of(path: Path, notes: list[str]) -> Mapping[str, Any]:
    """A table from a file; empty where there is none."""
    if not path.is_file():
        return {}
    try:
        value = parse_json(read_bounded(path, MOST_BENCHMARK))
    except (OSError, ValueError) as error:
        notes.append(f"{path.name} cannot be read: {error}")
        return {}
    return value if isinstance(value, dict) else {}


def _text_of(path: Path) -> str:
    try:
        return read_bounded(path).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
