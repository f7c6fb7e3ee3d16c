"""Have the models of a report answer: on frames without labels, and on labelled ones where they are given."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.data import open_dataset
from ptedge.errors import MissingExtraError, PtedgeError
from ptedge.frames.source import FrameIndex, index_frames
from ptedge.progress import Progress
from ptedge.scores.convention import CONVENTIONS, VOC
from ptedge.scores.evaluation import evaluate_model

from .gather import Facts, table_of
from .page import Findings
from .pictures import Model, after_model, before_model, compare, read_answers

LOOKED_AT = 24  # frames
BEFORE, AFTER, ALONE = "source model", "adapted model", "trained model"


def ask(facts: Facts, frames: str | None, val: Path | None) -> Findings:
    """Open what models there are and have them answer; what cannot be done is noted.

    Args:
        facts: what was read.
        frames: FRAMES to look at; ``None`` takes the field folder, else the target that the run adapted to.
        val: labelled DATA to score both models on.

    Raises:
        PtedgeError: what the user named cannot be read, or fits no model.
    """
    findings = Findings()
    with contextlib.ExitStack() as opened:
        newer = _opened(opened, facts, facts.bundle or facts.run / "model.pt", findings)
        older = _opened(opened, facts, facts.before, findings) if facts.before is not None and facts.adapted else None
        index = _index(facts, frames, findings)
        models = _models(facts, older, newer, index, findings)
        if models and index is not None:
            findings.views = compare(models, index, facts.class_names, LOOKED_AT)
            findings.titles = tuple(model.title for model in models)
            findings.frames = f"{index.spec} ({len(index):,})"
        findings.scores = _scores(facts, [(BEFORE, older), (_name(facts), newer)], val)
    return findings


def _name(facts: Facts) -> str:
    return AFTER if facts.adapted else ALONE


def _opened(opened: contextlib.ExitStack, facts: Facts, path: Path, findings: Findings) -> Predictor | None:
    """A model, closed when the report is done; ``None`` with a note where it cannot run here."""
    if not path.exists():
        findings.notes.append(
            (f"{path.name} is not there, so the newer model was not asked.", f"ptedge report {facts.run} BUNDLE")
        )
        return None
    try:
        predictor = open_predictor(path)
    except (ModuleNotFoundError, MissingExtraError):
        command = f"ptedge export {path} --out BUNDLE && ptedge report {facts.run} BUNDLE"
        findings.notes.append(
            (f"{path.name} is a checkpoint, and torch is not installed here. A bundle needs none:", command)
        )
        return None
    opened.callback(predictor.close)
    if tuple(predictor.class_names) != facts.class_names:
        findings.notes.append(
            (f"{path} has other classes than the run, so it was not asked.", f"ptedge inspect {path}")
        )
        return None
    return predictor


def _index(facts: Facts, frames: str | None, findings: Findings) -> FrameIndex | None:
    """Frames to look at: named, of the field folder, or those that the run adapted to, if they are still there."""
    if frames is not None:
        return index_frames(frames)
    if facts.collected is not None:
        return index_frames(facts.collected)
    data = facts.lineage.get("data")
    spec = str(data[0]) if isinstance(data, (list, tuple)) and data and facts.adapted else None
    with contextlib.suppress(PtedgeError):
        if spec is not None:
            return index_frames(spec)
    where = f"{spec} is not to be read here" if spec else "the run names no target frames"
    findings.notes.append((f"No frames to look at: {where}.", f"ptedge report {facts.run} --frames FRAMES"))
    return None


def _models(
    facts: Facts, older: Predictor | None, newer: Predictor | None, index: FrameIndex | None, findings: Findings
) -> list[Model]:
    """Who is asked, the newer last."""
    models = []
    name_it = f"ptedge report {facts.run} --before CHECKPOINT"
    if older is not None:
        models.append(before_model(older, {}, BEFORE))
        if facts.before_is_start:
            text = "The source model's file is not where the run found it. What is called source model here is the"
            text += " start that the run kept; its BatchNorm statistics may be those of the target already."
            findings.notes.append((text, name_it))
    elif facts.collected is not None and index is not None and index.spec == str(facts.collected):
        answers, hashes = read_answers(facts.collected, len(facts.class_names))
        who = ", ".join(sorted(text[:12] for text in hashes)) or "another model"
        models += [before_model(None, answers, f"collected by {who}")] if answers else []
    if facts.adapted and not models:
        findings.notes.append(("The model that the run began with was not found, so nothing shows before.", name_it))
    if newer is not None:
        models.append(after_model(newer, _name(facts)))
    return models


def _scores(facts: Facts, models: list[tuple[str, Predictor | None]], val: Path | None) -> dict[str, dict[str, object]]:
    """Scores of each model on labelled data; without data what the run itself recorded."""
    scores: dict[str, dict[str, object]] = {}
    if val is None:
        recorded = dict(table_of(facts.summary, "val"))
        return {_name(facts): recorded} if recorded else {}
    # by the run's own rule, where it has scored, so that its numbers and these can be compared
    convention = CONVENTIONS.get(str(table_of(facts.summary, "val").get("convention")), VOC)
    for title, predictor in models:
        if predictor is not None:
            dataset = open_dataset(val, class_names=predictor.class_names, use="score")
            with Progress(f"scoring the {title}", len(dataset)) as progress:
                result = evaluate_model(predictor, dataset, lambda done, _: progress(done), convention)
            scores[title] = result.to_json()
    return scores
