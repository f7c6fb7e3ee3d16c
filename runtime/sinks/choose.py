"""The sinks of a run, opened by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..counters import RunSource
from .files import CocoSink, CsvSink, ImagesSink, JsonlSink, Result, Sink
from .video import VideoSink


class BySource:
    """A file for each source: hands a result to the sink of its source.

    Attributes:
        path: of the first one.
        sinks: by name of the source.
    """

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self.sinks = sinks
        self.path = next(iter(sinks.values())).path

    def write(self, result: Result) -> None:
        """Pass one result on."""
        self.sinks[result.source or ""].write(result)

    def close(self) -> None:
        """Finish all files, also after one fails; the first error is raised."""
        errors: list[Exception] = []
        for sink in self.sinks.values():
            try:
                sink.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]


def default_saves(kinds: Sequence[str]) -> tuple[str, ...]:
    """What is written where the user does not say. A camera runs for months: its pictures would fill the disk."""
    if "live" in kinds:
        return ("jsonl",)
    return ("jsonl", "video") if "video" in kinds else ("jsonl", "images")


def open_sinks(names: Sequence[str], out: Path, sources: Sequence[RunSource], class_names: Sequence[str]) -> list[Sink]:
    """Open sinks.

    Args:
        names: of ``jsonl``, ``csv``, ``coco``, ``video``, ``images``.
        out: folder, which exists.
        sources: of the run; with several of them, files say which one.
        class_names: names by label.

    Raises:
        OutputError: a file cannot be written.
    """
    several = len(sources) > 1
    sinks: list[Sink] = []
    for name in names:
        if name == "jsonl":
            sinks.append(JsonlSink(out / "detections.jsonl"))
        elif name == "csv":
            sinks.append(CsvSink(out / "detections.csv", several))
        elif name == "coco":
            sinks.append(CocoSink(out / "coco.json", class_names, ", ".join(about.shown for about in sources)))
        elif name == "images":
            sinks.append(ImagesSink(out / "images"))
        elif several:
            opened = [about for about in sources if about.source is not None]
            sinks.append(BySource({a.name: VideoSink(out / f"video-{a.name}.mp4", _fps(a)) for a in opened}))
        else:
            sinks.append(VideoSink(out / "video.mp4", _fps(sources[0])))
    return sinks


def written(sinks: Sequence[Sink]) -> list[str]:
    """Files and folders that are there now."""
    flat = [part for sink in sinks for part in (sink.sinks.values() if isinstance(sink, BySource) else (sink,))]
    return [str(sink.path) for sink in flat if isinstance(sink.path, Path) and sink.path.exists()]


def _fps(about: RunSource) -> float | None:
    if about.source is None or about.source.fps is None:
        return None
    return about.source.fps / (about.source.stride if about.source.rate is None else 1)
