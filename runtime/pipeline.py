"""The pipeline: decode, preprocess, infer, postprocess, write, each on its own thread; the model on the caller's.

::

    source 0 -> lane -+
    source 1 -> lane -+-> preprocess -> ready -> infer -> raw -> postprocess -> results -> sinks

Everything between two stages is bounded (``channel.py``). *Lossless*, a slow stage makes those before it wait.
*Realtime*, each lane holds the newest frame only and drops are counted; the preparation of a frame then starts when the
model is free for it, so that no prepared frame grows old.

An error in a stage ends the run: what was detected before is still written, every sink is closed, then the error is
raised to the caller. A source that fails ends alone; only when all have failed is that an error of the run.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.errors import InputError, PtedgeError
from ptedge.frames.source import Frame, FrameSource

from .channel import Channel, Lanes
from .counters import RunCounters
from .masks import Masks
from .sinks.files import Result, Sink
from .slot import Group, LoadedModel, ModelSlot

DECODED = 4  # frames of a source that wait for preprocessing
READY = 2  # groups that wait for the model
RAW = 2  # outputs that wait for postprocessing
RESULTS = 4  # results that wait to be written
POLL = 0.1  # seconds after which the waiting caller looks whether it should stop
LEAVE = 2.0  # seconds that sources get to end; one that blocks in a camera's driver dies with the process


@dataclass(frozen=True)
class Rules:
    """How frames are treated.

    Attributes:
        realtime: drop frames that the model is too slow for.
        pace: numbers of sources whose frames come at their own times, as from a camera (videos in realtime).
        fill: seconds that a group smaller than the graph's batch waits for further frames; ``None`` waits until it is
            full or all sources have ended.
        min_score: detections below are left out.
        draw_score: detections below are left out of pictures.
        masks: places that no sink may see; ``None`` for none.
    """

    realtime: bool = False
    pace: frozenset[int] = frozenset()
    fill: float | None = None
    min_score: float = 0.0
    draw_score: float = 0.0
    masks: Masks | None = None


class Pipeline:
    """One run over one or several sources with one model.

    Attributes:
        counters: counted while it runs.
    """

    def __init__(
        self,
        sources: Sequence[Iterable[Frame]],
        models: ModelSlot,
        sinks: Sequence[Sink],
        counters: RunCounters,
        rules: Rules,
        stop: threading.Event,
        progress: Callable[[RunCounters], None] | None = None,
    ) -> None:
        """Put the stages together; nothing runs yet.

        Args:
            sources: each iterated on a thread of its own.
            models: hold the model, whose graph is run on the thread that calls :meth:`run`.
            sinks: get every result, a source's in order, on one thread; closed in any case.
            counters: with one entry a source.
            rules: how frames are treated.
            stop: ends the run when set; what was detected so far is still written.
            progress: called after each written frame, on the writing thread.
        """
        self.counters = counters
        self._sources, self._models, self._sinks, self._rules = sources, models, sinks, rules
        self._stop, self._progress = stop, progress
        self._lanes: Lanes[tuple[Frame, float]] = Lanes(
            len(sources), max(DECODED, models.predictor.batch), rules.realtime
        )
        self._ready: Channel[Group] = Channel(READY)
        self._raw: Channel[tuple[Group, Mapping[str, NDArray[Any]]]] = Channel(RAW)
        self._results: Channel[tuple[int, Result]] = Channel(RESULTS)
        self._errors: list[PtedgeError] = []
        self._failed: dict[int, PtedgeError] = {}  # by source

    @property
    def waiting(self) -> dict[str, int]:
        """How many items wait between the stages now."""
        counts = len(self._lanes), len(self._ready), len(self._raw), len(self._results)
        return dict(zip(("decoded", "ready", "raw", "results"), counts, strict=True))

    def run(self) -> None:
        """Detect on all frames; returns when every sink is closed.

        Raises:
            PtedgeError: what a stage or a sink raised first, or the first source's fault when all have failed.
        """
        readers = [self._thread(self._read, i) for i in range(len(self._sources))]
        preparer = [] if self._rules.realtime else [self._thread(self._prepare)]
        finishers = [self._thread(self._finish), self._thread(self._write)]
        for thread in (*reversed(finishers), *preparer, *readers):
            thread.start()
        try:
            self._infer()
        finally:
            self._lanes.abort()
            self._ready.abort()
            self._raw.end()
            for frames in self._sources:  # a camera that waits for a frame would not notice otherwise
                if isinstance(frames, FrameSource):
                    frames.close()
            for thread in finishers:
                thread.join()
            self._leave([*preparer, *readers])
            self._close()
            if self.counters.first is not None:
                self.counters.seconds = self.counters.clock() - self.counters.first
        if self._errors:
            raise self._errors[0]
        if self._failed and len(self._failed) == len(self._sources):
            raise self._all_failed()

    def _infer(self) -> None:
        try:
            for group in self._groups():
                start = time.perf_counter()
                outputs = self._models.answer(group)
                self.counters.infer.add(time.perf_counter() - start)
                if not self._raw.put((group, outputs)):
                    return
                self._models.after(group)
        except Exception as error:
            self._fail("inference", error)

    def _groups(self) -> Iterator[Group]:
        """Prepared groups until the sources end or someone asks to stop."""
        while not self._stop.is_set():
            if not self._rules.realtime:
                got = self._ready.get(POLL)
            else:
                model = self._models.current
                taken = self._lanes.take(model.predictor.batch, self._rules.fill, POLL)
                # an empty list is one
                got = [self._models.prepare(taken, model)] if taken else taken  # type: ignore[assignment]
            if got is None:
                return
            yield from got

    def _read(self, number: int) -> None:
        about = self.counters.sources[number]
        try:
            with contextlib.closing(self._paced(number)) as frames:
                for frame in frames:
                    if not self._lanes.put(number, (frame, self.counters.arrived(number, frame))):
                        return
                    about.replaced = self._lanes.replaced[number]
        except Exception as error:
            self._failed[number] = _sentence(f"reading {about.shown}", error)
            about.error = str(self._failed[number])
        finally:
            about.ended = True
            self._lanes.end(number)

    def _paced(self, number: int) -> Generator[Frame, None, None]:
        start = None
        frames = iter(self._sources[number])
        try:
            for frame in frames:
                if number in self._rules.pace and frame.time is not None:
                    now = time.monotonic()
                    start = now - frame.time if start is None else start
                    self._lanes.pause(start + frame.time - now)
                yield frame
        finally:
            if hasattr(frames, "close"):
                frames.close()

    def _prepare(self) -> None:
        try:
            # the model of now, also where frames come later: they go to it even if another has taken its place
            while (
                taken := self._lanes.take((model := self._models.current).predictor.batch, self._rules.fill)
            ) is not None:
                if not self._ready.put(self._models.prepare(taken, model)):
                    return
        except Exception as error:
            self._fail("preprocessing", error)
        finally:
            self._lanes.abort()
            self._ready.end()

    def _finish(self) -> None:
        try:
            for group, outputs in self._raw:
                found = group.detections(outputs)
                for (number, (frame, arrival)), detections in zip(group.taken, found, strict=True):
                    if not self._results.put((number, self._result(number, frame, arrival, detections, group.model))):
                        return
                self._models.done(group)
        except Exception as error:
            self._fail("postprocessing", error)
        finally:
            self._raw.abort()
            self._results.end()

    def _result(self, number: int, frame: Frame, arrival: float, detections: Detections, model: LoadedModel) -> Result:
        kept = detections.select(detections.scores >= self._rules.min_score)
        if self.counters.watch is not None:
            self.counters.watch.take_model(model.predictor)
            self.counters.watch.add(number, frame, detections)
        age = self.counters.clock() - arrival
        self.counters.detected(kept, model.predictor.class_names, age)
        source, masks = self.counters.sources[number].name, self._rules.masks
        name = source if len(self._sources) > 1 else None
        hidden = masks.of(source, frame.image) if masks is not None else None
        return Result(
            frame=replace(frame, image=hidden.hide(frame.image)) if hidden is not None else frame,
            detections=kept,
            class_names=model.predictor.class_names,
            draw_score=self._rules.draw_score,
            source=name,
            age=age if self._rules.realtime else None,
            version=model.version,
            model=model.predictor.record,
            candidates=detections,
            hidden=hidden,
        )

    def _write(self) -> None:
        try:
            for number, result in self._results:
                self._give(result)
                about = self.counters.sources[number]
                about.frames += 1
                about.detections += len(result.detections)
                if self._progress is not None:
                    self._progress(self.counters)
        except Exception as error:
            self._fail("writing", error)
        finally:
            self._results.abort()

    def _give(self, result: Result) -> None:
        """Hand a result to every sink, also after one fails, so that no other lacks it."""
        errors: list[Exception] = []
        for sink in self._sinks:
            try:
                sink.write(result)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _leave(self, threads: Sequence[threading.Thread]) -> None:
        deadline = time.monotonic() + LEAVE
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _close(self) -> None:
        """Close every sink, also after one fails."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception as error:
                self._fail("finishing a file", error)

    def _fail(self, stage: str, error: Exception) -> None:
        self._errors.append(_sentence(stage, error))

    def _all_failed(self) -> PtedgeError:
        first = self._failed[min(self._failed)]
        if len(self._sources) == 1:
            return first
        return InputError(f"all {len(self._sources)} sources failed; the first: {first}")

    def _thread(self, stage: Callable[..., None], *arguments: int) -> threading.Thread:
        name = f"ptedge{stage.__name__}{''.join(f'-{a}' for a in arguments)}"
        return threading.Thread(target=stage, args=arguments, name=name, daemon=True)


def _sentence(stage: str, error: Exception) -> PtedgeError:
    """An error as the user reads it; the original stays attached as its cause."""
    if isinstance(error, PtedgeError):
        return error
    line = str(error).strip().partition("\n")[0]
    sentence = PtedgeError(
        f"{stage} failed: {type(error).__name__}{f': {line}' if line else ''}. "
        "This is a fault of ptedge or of a library it uses; please report it with this line"
    )
    sentence.__cause__ = error
    return sentence
