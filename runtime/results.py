"""The results folder of ``ptedge run``, with ``run.json``, which says what in it is of which run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ptedge.errors import OutputError
from ptedge.files import parse_json, read_bounded, shown_name, write_json
from ptedge.folders import refuse_strangers, set_aside

from .counters import RunSource
from .options import OutputOptions
from .report import log
from .sinks.choose import result_names
from .sinks.lines import rotated_files

DEFAULT_OUT = Path("runs/detect")
RECORD = "run.json"
MOST_BYTES = 64 << 20  # of the record, which names every picture of every run
COMMAND = "ptedge run"
LINES = ("detections.jsonl", "detections.csv")
STARTS_KEPT = 100  # of a service that is restarted for years


def begin_results(
    out: Path, save: Sequence[str], sources: Sequence[RunSource], output: OutputOptions, about: Mapping[str, Any]
) -> int:
    """Make room for a run's results: earlier ones step aside, or are gone on with where that was asked for.

    Args:
        out: folder that is held.
        save: kinds of results, not none.
        sources: of the run.
        output: whether to append.
        about: of the model, for ``run.json``.

    Returns:
        How often a run began to write there, this one included; 1 for a run of its own.

    Raises:
        OutputError: what is there is of no run, or the folder is not writable.
    """
    earlier = _read(out / RECORD)
    files = _files_of(out, earlier)
    if not output.append or earlier is None:
        moved = set_aside(out, files, RECORD)
        if moved is not None:
            log(f"{out} held an earlier run's results; they are in {moved} now (--append goes on with them)")
        earlier = None
    start = int(earlier["starts"]) + 1 if earlier is not None else 1
    names = [name for group in result_names(save, sources, start).values() for name in group]
    refuse_strangers(out, [name for name in names if start == 1 or name not in LINES])
    begun = {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **about,
        "sources": [about.shown for about in sources],
        "after_bytes": {name: _size(out / name) for name in names if name in LINES},
    }
    runs = [*(earlier["runs"] if earlier is not None else []), begun][-STARTS_KEPT:]
    known = sorted({*(earlier["files"] if earlier is not None else []), *names})
    write_json(out / RECORD, {"schema": 1, "command": COMMAND, "files": known, "starts": start, "runs": runs})
    return start


def _read(path: Path) -> dict[str, Any] | None:
    """The record of earlier runs; ``None`` without one.

    Raises:
        OutputError: it is none of ours.
    """
    try:
        found = parse_json(read_bounded(path, MOST_BYTES))
        names, starts, runs = found["files"], found["starts"], found["runs"]
        ours = found["command"] == COMMAND and isinstance(starts, int) and isinstance(runs, list)
        if ours and all(isinstance(name, str) and Path(name).name == name not in ("..", RECORD) for name in names):
            return dict(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise OutputError(f"{shown_name(str(path))} is no record of a run of ptedge. Move it away, or choose another --out")


def _files_of(out: Path, record: Mapping[str, Any] | None) -> list[str]:
    if record is None:
        return []
    parts = [part.name for name in LINES if name in record["files"] for _, part in rotated_files(out / name)]
    return [*record["files"], *parts]


def _size(path: Path) -> int:
    """Bytes in a file of lines and in those before it."""
    parts = [part for _, part in rotated_files(path)]
    return sum(part.stat().st_size for part in (*parts, path) if part.exists())
