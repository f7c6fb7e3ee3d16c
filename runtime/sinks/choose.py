"""The sinks of a run, opened by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ptedge.files import shown_name

from ..counters import RunSource
from .files import CocoSink, CsvSink, ImagesSink, JsonlSink, LeftOut, Result, Sink
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


def result_names(names: Sequence[str], sources: Sequence[RunSource], start: int = 1) -> dict[str, list[str]]:
    """Files and folders of a run's results, by kind.

    Args:
        names: of ``jsonl``, ``csv``, ``coco``, ``video``, ``images``.
        sources: of the run; with several of them, each has a video.
        start: how often a run began to write there, this one included. Lines are appended; what cannot be has the
            number in its name from the second on.
    """
    tail = f"-{start}" if start > 1 else ""
    several = [f"-{about.name}" for about in sources if about.source is not None] if len(sources) > 1 else [""]
    every = {
        "jsonl": ["detections.jsonl"],
        "csv": ["detections.csv"],
        "coco": [f"coco{tail}.json"],
        "images": [f"images{tail}"],
        "video": [f"video{name}{tail}.mp4" for name in several],
    }
    return {name: every[name] for name in names}


def open_sinks(
    names: Sequence[str],
    out: Path,
    sources: Sequence[RunSource],
    class_names: Sequence[str],
    start: int = 1,
    rotate: int | None = None,
) -> list[Sink]:
    """Open sinks.

    Args:
        names: of ``jsonl``, ``csv``, ``coco``, ``video``, ``images``.
        out: folder, which exists.
        sources: of the run; with several of them, files say which one.
        class_names: names by label.
        start: as :func:`result_names`.
        rotate: bytes of a file of lines; ``None`` for any number.

    Raises:
        OutputError: a file cannot be written.
    """
    several, append = len(sources) > 1, start > 1
    sinks: list[Sink] = []
    for name, files in result_names(names, sources, start).items():
        path = out / files[0]
        if name == "jsonl":
            sinks.append(JsonlSink(path, append=append, rotate=rotate))
        elif name == "csv":
            sinks.append(CsvSink(path, several, append=append, rotate=rotate))
        elif name == "coco":
            sinks.append(CocoSink(path, class_names, ", ".join(about.shown for about in sources)))
        elif name == "images":
            sinks.append(ImagesSink(path))
        elif several:
            opened = [about for about in sources if about.source is not None]
            videos = zip(opened, files, strict=True)
            sinks.append(BySource({a.name: VideoSink(out / file, _fps(a)) for a, file in videos}))
        else:
            sinks.append(VideoSink(path, _fps(sources[0])))
    return sinks


def written(sinks: Sequence[Sink]) -> list[str]:
    """Files and folders that are there now."""
    return [shown_name(str(sink.path)) for sink in _flat(sinks) if isinstance(sink.path, Path) and sink.path.exists()]


def left_out(sinks: Sequence[Sink]) -> dict[str, LeftOut]:
    """Files or folders that lack frames, and how many; those that lack none are not named."""
    counts = {Path(sink.path).name: sink.left_out for sink in _flat(sinks) if isinstance(sink, ImagesSink | VideoSink)}
    return {name: left for name, left in counts.items() if left.count}


def _flat(sinks: Sequence[Sink]) -> list[Sink]:
    return [part for sink in sinks for part in (sink.sinks.values() if isinstance(sink, BySource) else (sink,))]


def _fps(about: RunSource) -> float | None:
    if about.source is None or about.source.fps is None:
        return None
    return about.source.fps / (about.source.stride if about.source.rate is None else 1)
