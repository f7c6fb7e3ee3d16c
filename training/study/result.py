"""A finished run of a study, one line of results.jsonl: all that the table and the plots know of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ptedge.errors import ArtifactError

from .plan import Study, Sweep


@dataclass(frozen=True)
class Scores:
    """Average precision of a checkpoint on the target's labelled data, each a share in 0..1.

    Attributes:
        ap50: at IoU 0.5.
        ap75: at IoU 0.75.
        ap: mean over IoU 0.5 to 0.95.
    """

    ap50: float
    ap75: float
    ap: float

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Scores:
        """From a table with ``AP50``, ``AP75`` and ``AP``.

        Raises:
            KeyError, TypeError, ValueError: one of them is missing or no finite number.
        """
        return cls(*(_number(values[name]) for name in ("AP50", "AP75", "AP")))

    def to_json(self) -> dict[str, float]:
        """Under the names that ``ptedge eval --json`` has."""
        return {"AP50": self.ap50, "AP75": self.ap75, "AP": self.ap}


@dataclass(frozen=True)
class Best:
    """The best of all kept checkpoints by the target's labels, which no user has.

    Attributes:
        checkpoint: stem of its file, or ``last``.
        ap50: its, in 0..1.
        of: how many were scored.
    """

    checkpoint: str
    ap50: float
    of: int


@dataclass(frozen=True)
class Result:
    """A row with a seed that is finished.

    Attributes:
        variant: name of the row.
        seed: of the run.
        kind: of the row.
        last: scores of the last checkpoint.
        chosen: scores of model.pt, chosen without labels.
        chosen_step: at which it was taken.
        sigma: how honest model.pt's sigma is, as ``ptedge eval --json`` has it.
        steps: optimiser steps done.
        seconds: of training.
        start: row whose checkpoint was adapted; empty for one that was trained from the beginning.
        memory_mib: most memory held, by place.
        guard_trips: how often a guard stepped in.
        best: where the row asked for it.
        per_class: AP50 of model.pt, in 0..1, by class; classes without boxes are absent.
        source_val: AP50 of model.pt on labelled data of the source, where it was scored there.
        sweep: the points the row stands at, as the study says now.
        roles: what the row is to the others, see :meth:`~ptedge.training.study.plan.Study.roles_of`.
    """

    variant: str
    seed: int
    kind: str
    last: Scores
    chosen: Scores
    chosen_step: int
    sigma: Mapping[str, Any]
    steps: int
    seconds: float
    start: str = ""
    memory_mib: Mapping[str, float] = field(default_factory=dict)
    guard_trips: int = 0
    best: Best | None = None
    per_class: Mapping[str, float] = field(default_factory=dict)
    source_val: float | None = None
    sweep: tuple[Sweep, ...] = ()
    roles: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One line of results.jsonl."""
        line: dict[str, Any] = {"variant": self.variant, "seed": self.seed, "kind": self.kind}
        if self.start:
            line["start"] = self.start
        line |= self.last.to_json()
        line["chosen"] = {"step": self.chosen_step, **self.chosen.to_json()}
        line |= {"sigma": dict(self.sigma), "steps": self.steps, "seconds": self.seconds}
        line |= {"memory_mib": dict(self.memory_mib), "guard_trips": self.guard_trips}
        if self.best is not None:
            line["best"] = {"checkpoint": self.best.checkpoint, "AP50": self.best.ap50, "of": self.best.of}
        if self.per_class:
            line["per_class"] = dict(self.per_class)
        if self.source_val is not None:
            line["source_val"] = self.source_val
        return {**line, "sweep": [asdict(sweep) for sweep in self.sweep], "roles": list(self.roles)}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Result:
        """What :meth:`to_json` gave, in this version or before rows had sweeps and roles.

        Raises:
            KeyError, TypeError, ValueError: something is missing or of another type.
        """
        best = line.get("best")
        return cls(
            variant=str(line["variant"]),
            seed=int(line["seed"]),
            kind=str(line["kind"]),
            last=Scores.from_json(line),
            chosen=Scores.from_json(line["chosen"]),
            chosen_step=int(line["chosen"]["step"]),
            sigma=dict(line["sigma"]),
            steps=int(line["steps"]),
            seconds=_number(line["seconds"]),
            start=str(line.get("start", "")),
            memory_mib=dict(line.get("memory_mib", {})),
            guard_trips=int(line.get("guard_trips", 0)),
            best=None if best is None else Best(str(best["checkpoint"]), _number(best["AP50"]), int(best["of"])),
            per_class={str(name): _number(value) for name, value in line.get("per_class", {}).items()},
            source_val=None if line.get("source_val") is None else _number(line["source_val"]),
            sweep=tuple(Sweep(str(one["axis"]), _number(one["value"])) for one in line.get("sweep", ())),
            roles=tuple(map(str, line.get("roles", ()))),
        )


def renewed(result: Result, study: Study) -> Result:
    """A result with what the study says of its row now; sweeps and roles may be added after the run.

    Args:
        result: of a row of the study.
        study: checked.
    """
    row = next(row for row in study.row if row.name == result.variant)
    return replace(result, sweep=row.sweep, roles=study.roles_of(row.name))


def read_results(path: Path) -> list[Result]:
    """Read results.jsonl.

    Raises:
        ArtifactError: unreadable, or a line is no result.
    """
    results = []
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} cannot be read ({type(error).__name__})") from None
    for number, text in enumerate(lines, start=1):
        try:
            results.append(Result.from_json(json.loads(text)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ArtifactError(
                f"line {number} of {path} is no result of a run ({type(error).__name__}: {error}). "
                f"Give the folder of a study or of a run"
            ) from None
    return results


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)
