"""The steps towards devices: export, verify, the gate and the canary, the soak, and everywhere."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from ptedge.config import to_dict

from .learn import result_of, start_of
from .rounds import Record, parse_time
from .standing import Standing, standing_of
from .work import StepFailedError, Work


def export(work: Work) -> Record:
    """Write the bundle, in size and precision like what runs."""
    from ptedge.artifacts.bundle import open_bundle

    settings, start = work.place.site.export, start_of(work)
    size, precision = settings.size or start.input_size, settings.precision or start.precision or "fp32"
    words = ["export", str(work.round.model), "--out", str(work.round.bundle), "--precision", precision]
    words += ["--size", size] if size else []
    words += ["--calibrate", str(work.round.frames)] if precision == "int8" else []
    document = work.ptedge("export", *words, *settings.options).needed()
    result = dict(document) | {"model_hash": open_bundle(work.round.bundle).model_hash}
    height, width = document["input_size"]
    why = f"{height}x{width}, {precision}, {document['bytes'] / 1e6:.1f} MB"
    inputs = {"checkpoint": str(result_of(work, "adapt")["checkpoint"])}
    return Record("export", "done", why, inputs=inputs, settings=to_dict(settings), result=result)


def verify(work: Work) -> Record:
    """Hold the bundle to its checkpoint."""
    settings = work.place.site.verify
    words = ["verify", str(work.round.bundle), "--against", str(work.round.model)]
    words += ["--frames", str(work.round.frames), "--limit", str(settings.limit)]
    answer = work.ptedge("verify", *words, *settings.options)
    if "passed" not in answer.document:
        answer.needed()
        raise StepFailedError(f"verify said nothing that can be read (all it said: {answer.log})")
    checks = [check for check in answer.document["checks"] if check["judged"]]
    shared: dict[str, Any] = {
        "inputs": {"model": str(result_of(work, "export")["model_hash"])},
        "settings": to_dict(settings),
        "result": dict(answer.document),
    }
    if not answer.document["passed"]:
        return Record("verify", "refused", answer.said, **shared, event="refused")
    return Record("verify", "done", f"{len(checks)} checks hold", **shared)


def canary(work: Work) -> Record:
    """Let the bundle through the gate, and have the canary run it; once, whatever became of it there since."""
    settings, deploy = work.place.site.gate, work.place.site.deploy
    model_hash = str(result_of(work, "export")["model_hash"])
    standing = standing_of(work, deploy.canary)
    shared: dict[str, Any] = {"inputs": {"model": model_hash}, "settings": to_dict(settings)}
    if (entry := standing.promotion_of(model_hash)) is not None:  # by a call that was killed since
        result = {"version": entry["version"], "number": entry["number"], "before": entry["before"]}
        why = f"{deploy.canary} got {entry['version']} by an earlier call"
        return Record("canary", "done", why, **shared, result=result, event="canary")
    words = ["promote", str(work.round.bundle), "--to", standing.deployment, "--frames", str(work.round.frames)]
    words += ["--seconds", str(settings.seconds), "--why", why_of(work)]
    words += ["--labels", work.place.located(settings.labels)] if settings.labels else []
    answer = work.ptedge("promote", *words, *settings.options)
    failed = [c for c in answer.document.get("checks", ()) if not c["passed"] and not c["accepted"]]
    if failed:
        why = "the gate: " + "; ".join(f"{check['name']} ({check['detail']})" for check in failed)
        return Record("canary", "refused", why, **shared, result=dict(answer.document), event="refused")
    document = answer.needed()
    return Record(
        "canary",
        "done",
        f"{deploy.canary} runs {document['version']}",
        **shared,
        result=dict(document),
        event="canary",
    )


def why_of(work: Work) -> str:
    """What histories say of a promotion by the loop."""
    return f"ptedge loop {work.place.file.stem}, round {work.round.number}"


def soak(work: Work) -> Record:
    """Wait until the canary has proven the version; end the round where it was sent back."""
    rules, version = work.place.site.soak, str(result_of(work, "canary")["version"])
    standing = standing_of(work, work.place.site.deploy.canary)
    shared: dict[str, Any] = {"inputs": {"version": version}, "settings": to_dict(rules)}
    if (why := _gone(standing, version)) is not None:
        event = "rolled back" if standing.withdrawn(version) else "refused"
        return Record("soak", "refused", why, **shared, event=event)
    entry = standing.promotion(version)
    if entry is None:
        raise StepFailedError(f"{standing.deployment} runs {version}, and its history does not say since when")
    hours = (datetime.now(timezone.utc) - parse_time(str(entry["time"]))).total_seconds() / 3600
    waits = _waits(work, standing, version, hours)
    result = {"version": version, "hours": round(hours, 3), "waits": waits}
    if not waits:
        return Record("soak", "done", f"{version} has run there for {hours:.1f} hours", **shared, result=result)
    why = f"{version} at {work.place.site.deploy.canary}: {'; '.join(waits)}"
    if rules.max_days and hours >= 24 * rules.max_days:
        why += f"; soak.max_days = {rules.max_days:g} are over. It stays there, and goes nowhere else"
        return Record("soak", "refused", why, **shared, result=result, event="refused")
    return Record("soak", "waiting", why, **shared, result=result)


def _gone(standing: Standing, version: str) -> str | None:
    """Why a version does not run at a deployment any more; ``None`` where it does."""
    if standing.version == version:
        return None
    if (why := standing.withdrawn(version)) is not None:
        return f"{standing.deployment} rolled {version} back: {why}"
    return f"{standing.deployment} runs {standing.version or 'nothing'} by now, not {version}"


def _waits(work: Work, standing: Standing, version: str, hours: float) -> list[str]:
    rules, kept = work.place.site.soak, standing.kept(version)
    waits = []
    if hours < rules.hours:
        waits.append(f"{hours:.1f} of soak.hours = {rules.hours:g}")
    if not standing.proves:  # the first version of a deployment has no probation
        return waits
    if kept is None and (rules.kept or rules.frames):
        waits.append("no run has kept it after a probation yet")
    elif kept is not None and (frames := int(kept.get("figures", {}).get("frames", 0))) < rules.frames:
        waits.append(f"{frames} frames on probation of soak.frames = {rules.frames}")
    return waits


def everywhere(work: Work) -> Record:
    """Pass on what the canary has proven; a deployment that refuses does not keep it from the others.

    Raises:
        StepFailedError: one could not be asked or written to; the others have it, and the next call goes on.
    """
    deploy, version = work.place.site.deploy, str(result_of(work, "canary")["version"])
    shared: dict[str, Any] = {"inputs": {"version": version}, "settings": to_dict(deploy)}
    if not deploy.all:
        return Record("all", "skipped", "deploy.all is empty", **shared)
    found: dict[str, Any] = {}
    failures = []
    for name in deploy.all:
        try:
            found[name] = _pass_on(work, name, version)
        except StepFailedError as error:
            failures.append(f"{name}: {error}")
    if failures:
        raise StepFailedError("; ".join(failures))
    runs = [name for name, one in found.items() if one["runs"]]
    why = f"{len(runs)} of {len(found)} deployments run {version}"
    why += "".join(f"; {name}: {one['why']}" for name, one in found.items() if not one["runs"])
    state, event = ("done", "everywhere") if runs else ("refused", "refused")
    return Record("all", state, why, **shared, result={"deployments": found}, event=event)


def _pass_on(work: Work, name: str, version: str) -> dict[str, Any]:
    """Have one deployment run a version, once: where it had it already, what became of it is told."""
    deploy, standing = work.place.site.deploy, standing_of(work, name)
    if (entry := standing.promotion(version)) is not None:
        why = _gone(standing, version)
        return {"runs": why is None, "number": entry["number"], "why": why or "it had it"}
    words = ["promote", "--from", work.place.located(deploy.canary), "--to", standing.deployment]
    words += ["--why", why_of(work), *([] if work.place.site.soak.kept else ["--unproven"]), *deploy.options]
    document = work.ptedge("promote", *words).needed()
    made = document["promotions"][0]
    if made["version"] != version:
        raise StepFailedError(f"{deploy.canary} passed on {made['version']}, not {version}")
    return {"runs": True, "number": made["number"], "why": "promoted"}
