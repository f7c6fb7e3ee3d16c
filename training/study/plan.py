"""What a study is: a table of variants, each trained with several seeds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from ptedge.config import require, require_one_of
from ptedge.scores.convention import CONVENTIONS, VOC

from .described import Counted, Described

KINDS = ("train", "oracle", "adapt", "source_free")
ROLES = ("source", "oracle", "beside")  # see Study
SETTINGS = ("source only", "with source", "source-free", "oracle")  # of published numbers
Paper = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class StudyData:
    """Where the data is; paths are relative to ``root``.

    Attributes:
        root: relative to the study's file; ``--data`` replaces it.
        source: labelled DATA of the source.
        frames: unlabelled FRAMES of the target.
        val: labelled DATA of the target, for AP only.
        oracle: labelled DATA of the target, for rows of kind ``oracle``, and for the ``labels`` of others.
        source_val: labelled DATA of the source; rows of kind ``train`` are scored on it too.
    """

    root: str = "."
    source: str = ""
    frames: str = ""
    val: str = ""
    oracle: str = ""
    source_val: str = ""


@dataclass(frozen=True)
class KindSettings:
    """Settings file of every kind, relative to the study's file; a row's own ``config`` wins.

    Attributes:
        train, oracle, adapt, source_free: TOML; empty for the command's defaults.
    """

    train: str = ""
    oracle: str = ""
    adapt: str = ""
    source_free: str = ""


@dataclass(frozen=True)
class Sweep:
    """Where a row stands in a sweep of one setting: a point of a plot over that setting.

    Attributes:
        axis: what varies, as it is written under the plot. Rows of one axis and one kind are one curve.
        value: the row's, finite.
    """

    axis: str
    value: float

    def __post_init__(self) -> None:
        if not self.axis.strip():
            raise ValueError("axis is empty; name what varies, for example tau")
        if not math.isfinite(self.value):
            raise ValueError(f"value is {self.value}; a point of a plot has a finite one")


@dataclass(frozen=True)
class Row:
    """A variant.

    Attributes:
        name: unique.
        kind: ``train`` (on source), ``oracle`` (on target labels), ``adapt`` (with source) or ``source_free``.
        config: settings file, relative to the study's file.
        set: ``key=value`` on top of it.
        start: row whose ``model.pt`` of the same seed is adapted; empty for the study's ``start``.
        labels: so many frames of ``data.oracle``, drawn by the run's seed, are given with their labels (``--labels``).
        teacher_boxes: COCO json of another detector's boxes, relative to the data (``--teacher-boxes``).
        best: also score every kept checkpoint on ``val`` and report the best: a choice by target labels, for the table.
        paper: column -> the paper's number, per cent.
        sweep: the sweeps it is a point of; none for a row that stands alone.
    """

    name: str
    kind: str
    config: str = ""
    set: tuple[str, ...] = ()
    start: str = ""
    labels: int = 0
    teacher_boxes: str = ""
    best: bool = False
    paper: Paper = ()
    sweep: tuple[Sweep, ...] = ()

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)
        if not slug(self.name):
            raise ValueError(f"a row's name needs a letter or digit, got {self.name!r}")
        require("labels", self.labels, 0)
        if (self.labels or self.teacher_boxes) and not self.adapts:
            raise ValueError(f"row {self.name!r} trains on labels: labels and teacher_boxes are for rows that adapt")
        axes = [sweep.axis for sweep in self.sweep]
        for axis in axes:
            if axes.count(axis) > 1:
                raise ValueError(f"row {self.name!r} has two values on the axis {axis!r}. Leave one")

    @property
    def adapts(self) -> bool:
        """It starts from another row's checkpoint."""
        return self.kind in ("adapt", "source_free")


@dataclass(frozen=True)
class Spread:
    """Rows that differ in one setting, whose medians are compared.

    Attributes:
        name: shown.
        rows: their names.
        paper: column -> the paper's number.
    """

    name: str
    rows: tuple[str, ...]
    paper: Paper = ()


@dataclass(frozen=True)
class Published:
    """A number that others published; shown beside ours, never among them.

    Attributes:
        method: its name.
        setting: of :data:`SETTINGS`.
        ap50: per cent.
        detector: and backbone.
        convention: as ``ptedge eval --convention`` has it, or what is known of it.
        told_by: where it stands.
    """

    method: str
    setting: str
    ap50: float
    detector: str = ""
    convention: str = ""
    told_by: str = ""

    def __post_init__(self) -> None:
        require_one_of("setting", self.setting, SETTINGS)
        require("ap50", self.ap50, 0, 100)


@dataclass(frozen=True)
class Untrained:
    """A detector that is timed and never trained, for its speed and size alone.

    Attributes:
        name: unique.
        config: settings file of ``train``, relative to the study's file; empty for the study's.
        set: ``key=value`` on top of it.
        classes: how many it tells apart.
    """

    name: str
    config: str = ""
    set: tuple[str, ...] = ()
    classes: int = 1

    def __post_init__(self) -> None:
        if not slug(self.name):
            raise ValueError(f"a name needs a letter or digit, got {self.name!r}")
        require("classes", self.classes, 1)


@dataclass(frozen=True)
class OtherGraph:
    """A graph of others that is timed beside the rows.

    Attributes:
        name: shown.
        file: ONNX, relative to the study's file; what it is fed is noise of its input's shape.
    """

    name: str
    file: str


@dataclass(frozen=True)
class Timing:
    """What of the study is exported and timed on this machine's CPU.

    Attributes:
        rounds: each graph once a round, in turn; 0 times nothing.
        threads: of ONNX Runtime.
        untrained: timed beside the rows that train.
        torchvision: detectors of ``torchvision.models.detection`` as it exports them, with random weights.
        torchvision_size: (height, width) of their input; those of ``ssd`` resize it to their own.
        graph: ONNX files of others.
    """

    rounds: int = 0
    threads: int = 1
    untrained: tuple[Untrained, ...] = ()
    torchvision: tuple[str, ...] = ()
    torchvision_size: tuple[int, int] = (384, 640)
    graph: tuple[OtherGraph, ...] = ()

    def __post_init__(self) -> None:
        require("rounds", self.rounds, 0)
        require("threads", self.threads, 1)
        for side in self.torchvision_size:
            require("a side of torchvision_size", side, 32)


@dataclass(frozen=True)
class Study:
    """A study as its TOML says.

    Attributes:
        title: heading of the table.
        seeds: each row runs with each.
        start: row that adaptations start from unless they say otherwise.
        baseline: row to which the others' differences are taken; empty for none.
        source: row that stands for no adaptation in the share of the gap; empty for none.
        oracle: row that stands for labels of the target.
        beside: rows drawn as dashed lines beside every sweep.
        convention: what AP50 and AP75 mean, as ``ptedge eval --convention`` has it.
        set: ``key=value`` for every run.
        data: where the data is.
        config: settings file of each kind.
        row: the variants.
        spread: groups of rows whose spread is reported.
        note: shown above the table.
        published: numbers of others, for a table of their own.
        described: parts of the data that the study's file describes itself.
        counted: what of them is there, once it is known.
        timing: what is exported and timed once the runs are finished.
    """

    title: str = "Study"
    seeds: tuple[int, ...] = (0,)
    start: str = ""
    baseline: str = ""
    source: str = ""
    oracle: str = ""
    beside: tuple[str, ...] = ()
    convention: str = VOC.name
    set: tuple[str, ...] = ()
    data: StudyData = field(default_factory=StudyData)
    config: KindSettings = field(default_factory=KindSettings)
    row: tuple[Row, ...] = ()
    spread: tuple[Spread, ...] = ()
    note: str = ""
    published: tuple[Published, ...] = ()
    described: tuple[Described, ...] = ()
    counted: tuple[Counted, ...] = ()
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        require_one_of("convention", self.convention, tuple(CONVENTIONS))

    def roles_of(self, row: str) -> tuple[str, ...]:
        """What a row is to the others: any of :data:`ROLES`."""
        named = {"source": (self.source,), "oracle": (self.oracle,), "beside": self.beside}
        return tuple(role for role in ROLES if row in named[role])


def slug(name: str) -> str:
    """A row's name as a folder's name."""
    return re.sub(r"[^a-z0-9.]+", "_", name.lower()).strip("_.")
