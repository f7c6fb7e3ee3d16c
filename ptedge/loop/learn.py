"""The steps in the workshop: adapt, look at what the adaptation did, estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptedge.config import from_dict, to_dict

from .gather import frame_records
from .rounds import Record
from .standing import Start, keep_checkpoint
from .work import StepFailedError, Work

# of summary.json, what later steps and readers of records want
_OF_SUMMARY = ("kind", "steps", "seconds", "target_frames", "stopped_by_guard", "guards", "start", "last", "chosen")


def start_of(work: Work) -> Start:
    """The model that the decision named: what runs by now may be another."""
    return from_dict(Start, result_of(work, "decide")["start"], "decide.json")


def result_of(work: Work, step: str) -> Mapping[str, Any]:
    """What an earlier step of the round came to.

    Raises:
        StepFailedError: it has no record.
    """
    record = work.round.record(step)
    if record is None:
        raise StepFailedError(f"{work.round.folder} has no record of {step}")
    return record.result


def adapt(work: Work) -> Record:
    """Adapt the present model to the round's frames, or go on where a kill ended that."""
    settings, start = work.place.site.adapt, start_of(work)
    words = ["adapt", start.checkpoint, "--target", str(work.round.frames), "--out", str(work.round.run)]
    words += ["--source", work.place.located(settings.source)] if settings.source else ["--source-free"]
    words += ["--config", work.place.located(settings.config)] if settings.config else []
    words += [word for change in settings.set for word in ("--set", change)]
    words += ["--resume"] if (work.round.run / "config.toml").exists() else []
    summary = work.ptedge("adapt", *words, *settings.options).needed()["summary"]
    digest = keep_checkpoint(work.place.folder, work.round.model)
    chosen = summary.get("chosen", {}).get("step", summary.get("steps"))
    why = f"{len(frame_records(work.round.frames))} frames, {summary.get('steps')} steps, the model of step {chosen}"
    result = {name: summary[name] for name in _OF_SUMMARY if name in summary}
    result |= {"checkpoint": digest, "estimate": summary.get("estimate")}
    inputs = dict(work.round.record("decide").inputs)  # type: ignore[union-attr]  # start_of read it
    return Record("adapt", "done", why, inputs=inputs, settings=to_dict(settings), result=result, event="adapted")


def watch(work: Work) -> Record:
    """Refuse what the adaptation itself found wrong: nothing learned, or guards that had to send it back too often."""
    rules, found = work.place.site.watch, result_of(work, "adapt")
    trips, chosen = len(found.get("guards") or ()), found.get("chosen") or {}
    settings = to_dict(rules)
    told = f"guards sent it back {trips} times" if trips else "no guard had to send it back"
    if chosen and chosen.get("step") == 0:
        why = f"by its monitors the model it began with is the best; {told}"
        return Record("watch", "refused", why, settings=settings, event="refused")
    if trips > rules.max_trips:
        why = f"{told}, more than watch.max_trips = {rules.max_trips}"
        return Record("watch", "refused", why, settings=settings, event="refused")
    return Record("watch", "done", told, settings=settings, result={"trips": trips})


def estimate(work: Work) -> Record:
    """Compare the label-free AP50 of both models on the same frames; refuse a fall beyond their errors."""
    rules, after = work.place.site.watch, result_of(work, "adapt").get("estimate")
    if not after:
        return Record("estimate", "skipped", "the model has not learned to estimate (docs/estimate.md)")
    words = ["estimate", start_of(work).checkpoint, "--target", str(work.round.frames)]
    before = work.ptedge("estimate", *words).needed()["estimate"]
    error = float((before["ap50_error"] ** 2 + after["ap50_error"] ** 2) ** 0.5)
    allowed = rules.max_estimate_loss * error
    why = f"AP50 without labels about {after['ap50']:.2f}, before {before['ap50']:.2f}, both within {error:.2f}"
    result = {"before": before, "after": after, "allowed_loss": allowed}
    settings = to_dict(rules)
    if after["ap50"] < before["ap50"] - allowed:
        why += f": more than watch.max_estimate_loss = {rules.max_estimate_loss:g} standard errors less"
        return Record("estimate", "refused", why, settings=settings, result=result, event="refused")
    return Record("estimate", "done", why, settings=settings, result=result)
