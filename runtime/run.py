"""``ptedge run``: puts sources, model and sinks together around the pipeline."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2

from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import PtedgeError
from ptedge.folders import hold_folder, take_folder
from ptedge.frames.address import is_live
from ptedge.frames.source import FrameSource, open_frames
from ptedge.frames.status import LiveOptions, SourceEvent
from ptedge.machine.heap import limit_arenas
from ptedge.progress import Progress
from ptedge.signals import finishing

from .counters import RunCounters, RunSource
from .deployment.follow import Follower
from .deployment.place import Place, is_deployment, open_deployment
from .drift.watch import DriftWatch
from .inputs import choose_realtime, open_sources
from .masks import Masks, read_masks
from .options import (
    CollectOptions,
    DriftOptions,
    ModelOptions,
    OutputOptions,
    RunOptions,
    ServeOptions,
    SourceOptions,
)
from .page.serve import LiveServer
from .page.status import RunStatus, model_facts
from .page.view import LiveView
from .pipeline import Pipeline, Rules
from .report import log, run_report, tell
from .results import COMMAND, DEFAULT_OUT, begin_results
from .sinks.choose import default_saves, open_sinks
from .sinks.collect import FieldSink
from .sinks.files import Sink
from .sinks.push import open_push
from .slot import LoadedModel, ModelSlot

LIVE_FILL = 0.05  # seconds that a batch waits for frames of live sources in lossless mode


def run_bundle(bundle: Place, specs: list[str], options: RunOptions) -> tuple[dict[str, Any], int]:
    """Detect on frames and write the results.

    Args:
        bundle: folder or ``.onnx`` file, or a deployment: its folder or address.
        specs: sources of frames, at least one.
        options: everything else.

    Returns:
        (report, exit status): the status is 0; 128 + signal when a signal ended the run (the files are whole then); 1
        when sources failed and ``strict`` is set.

    Raises:
        PtedgeError: all sources, the output or the bundle are at fault; files written so far are finished.
    """
    limit_arenas()
    with contextlib.ExitStack() as opened:
        sources = open_sources(specs, lambda spec: _open(spec, options.source))
        for about in sources:
            if about.source is not None:
                opened.callback(about.source.close)
        realtime = choose_realtime(sources, options.source.realtime)
        masks = _masks(options.output.mask, sources)
        save = _what_to_save(options, sources)
        out = opened.enter_context(take_folder(options.output.folder, DEFAULT_OUT, COMMAND)) if save else None
        if options.collect is not None:
            opened.enter_context(hold_folder(options.collect.folder, f"{COMMAND} --collect"))
        models, follower = _open_models(bundle, options.model, opened)
        predictor = models.predictor
        _tell_start(sources, predictor)
        stop = opened.enter_context(finishing())
        # whatever may refuse comes before results of an earlier run are overwritten
        collector = _open_collector(options.collect, predictor) if options.collect is not None else None
        push = open_push(options.push, predictor.model_hash, log) if options.push is not None else None
        counters = RunCounters(sources, watch=_watch(sources, options.drift, predictor))
        status = RunStatus(counters, model_facts(predictor), realtime, collector, push, follower=follower)
        view = _open_view(options.serve, status, opened) if options.serve is not None else None
        sinks = _open_files(out, save, sources, options.output, predictor) if out is not None else []
        sinks += [sink for sink in (collector, push, view) if sink is not None]
        progress = opened.enter_context(Progress("detecting", _count(sources), "frames"))
        pipeline = Pipeline(
            sources=[about.source if about.source is not None else () for about in sources],
            models=models,
            sinks=sinks,
            counters=counters,
            rules=_rules(sources, options.output, realtime, masks),
            stop=stop.event,
            progress=lambda counters: progress(counters.frames),
        )
        status.waiting = lambda: pipeline.waiting
        if follower is not None:
            follower.switched = status.take_model
            follower.start()
        _run(pipeline, counters)
    report = run_report(counters, models, sinks, collector, push, stop)
    if follower is not None:
        report["deployment"] = follower.to_json()
    tell(report, realtime)
    failed = options.source.strict and any(about.error for about in sources)
    return report, stop.exit_status or int(failed)


def _open_files(
    out: Path, save: tuple[str, ...], sources: Sequence[RunSource], output: OutputOptions, predictor: BundlePredictor
) -> list[Sink]:
    about = {"model_hash": predictor.model_hash, "backend": predictor.runner.backend}
    start = begin_results(out, save, sources, output, about)
    return open_sinks(save, out, sources, predictor.class_names, start, output.rotate_bytes)


def _open(spec: str, options: SourceOptions) -> FrameSource:
    # a camera's reader keeps the newest frame by itself, unless every frame is wanted
    live = LiveOptions(newest=options.realtime is not False, login_file=options.source_auth, on_event=_tell_event)
    return open_frames(
        spec,
        start=options.start,
        stride=options.stride,
        limit=options.limit,
        loop=options.loop and not is_live(spec),
        rate=options.rate,
        flip=options.flip,
        live=live,
    )


def _tell_event(event: SourceEvent) -> None:
    if event.kind in ("lost", "stalled", "reconnected", "resized"):
        log(event.text)


def _watch(sources: Sequence[RunSource], options: DriftOptions, predictor: BundlePredictor) -> DriftWatch:
    watch = DriftWatch([(about.name, about.kind == "live") for about in sources], options.seconds_between, log)
    watch.take_model(predictor)
    return watch


def _what_to_save(options: RunOptions, sources: Sequence[RunSource]) -> tuple[str, ...]:
    """As asked; who only collects writes nothing else."""
    if options.output.save is not None:
        return options.output.save
    if options.collect is not None and options.output.folder is None:
        return ()
    return default_saves([about.kind for about in sources])


def _open_models(
    bundle: Place, options: ModelOptions, opened: contextlib.ExitStack
) -> tuple[ModelSlot, Follower | None]:
    """The model, and of a deployment what follows it; both are closed with ``opened``."""
    follower = None
    if is_deployment(bundle):
        deployment = open_deployment(bundle, options.cache)
        follower = Follower(
            deployment, lambda path: _open_model(path, options), log, options.probation, seconds=options.poll
        )
        models = follower.slot
    else:
        models = ModelSlot(LoadedModel(_open_model(Path(bundle), options)))
    opened.callback(models.close)
    if follower is not None:
        opened.callback(follower.close)
    return models, follower


def _open_model(bundle: Path, options: ModelOptions) -> BundlePredictor:
    trust = Trust.read(options.trust)
    quick = options.quick_shrink
    predictor = BundlePredictor(bundle, options.backend, options.threads, trust=trust, quick_shrink=quick)
    if predictor.runner.backend == "cpu":
        # OpenCV's own threads would take turns with the model's; the stages already run beside each other
        cv2.setNumThreads(1)
    return predictor


def _tell_start(sources: Sequence[RunSource], predictor: BundlePredictor) -> None:
    for about in sources:
        log(f"{about.shown}: {about.kind if about.source else about.error}")
    log(f"signature: {predictor.signature}")
    log(f"on {predictor.runner.backend} ({predictor.runner.reason})")


def _open_collector(options: CollectOptions, predictor: BundlePredictor) -> FieldSink:
    manifest = predictor.manifest
    preprocessing = {"letterbox": manifest.letterbox, "input_size": list(manifest.input_size), "color": manifest.color}
    return FieldSink(options.folder, options.policy, predictor.class_names, predictor.model_hash, preprocessing, log)


def _open_view(options: ServeOptions, status: RunStatus, opened: contextlib.ExitStack) -> LiveView:
    """The live page, served until ``opened`` is closed."""
    view = LiveView()
    server = LiveServer(options, status, view, [about.name for about in status.counters.sources])
    opened.callback(server.close)
    log(f"live view at {server.address}" + ("?token=TOKEN" if options.token else ""))
    return view


def _masks(path: Path | None, sources: Sequence[RunSource]) -> Masks | None:
    return read_masks(path, [about.name for about in sources]) if path is not None else None


def _rules(sources: Sequence[RunSource], options: OutputOptions, realtime: bool, masks: Masks | None) -> Rules:
    live = any(about.kind == "live" for about in sources)
    return Rules(
        realtime=realtime,
        pace=frozenset(i for i, about in enumerate(sources) if realtime and about.kind != "live"),
        fill=0.0 if realtime else LIVE_FILL if live else None,
        min_score=options.min_score,
        draw_score=options.draw_score,
        masks=masks,
    )


def _count(sources: Sequence[RunSource]) -> int | None:
    counts = [about.source.count for about in sources if about.source is not None]
    return sum(count or 0 for count in counts) if None not in counts else None


def _run(pipeline: Pipeline, counters: RunCounters) -> None:
    try:
        pipeline.run()
    except PtedgeError:
        lost = counters.ages.count - counters.frames
        log(f"ended early: {counters.frames} frames written, {lost} detected but not written")
        raise
