"""What the detectors of a study cost on this machine: exported, timed in turn, measured in bytes and products."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ptedge.artifacts.bundle import MODEL_NAME
from ptedge.config import to_dict
from ptedge.errors import TrainingError
from ptedge.files import write_json

from ..jobs import Job
from ..load import settings_of_untrained
from ..plan import Study, slug
from ..process import Processes
from ..result import Result

FOLDER = "speed"  # in the study's

_UNTRAINED = ("-m", "ptedge.training.study.timing.untrained")


@dataclass(frozen=True)
class Speed:
    """What one detector costs.

    Attributes:
        name: row of the study, or what is timed beside the rows.
        kind: ``row``, ``untrained``, or ``other`` for a graph that is not ours.
        input: of the graph, height x width; empty where unknown.
        proposals: of an image at inference; 0 where unknown.
        ms: median of one image by the clock.
        processor_ms: the same in processor time.
        megabytes: of the ONNX file.
        gmacs: multiplications of one image, in thousands of millions; 0 where unknown.
    """

    name: str
    kind: str
    input: str
    proposals: int
    ms: float
    processor_ms: float
    megabytes: float
    gmacs: float


@dataclass(frozen=True)
class _Graph:
    name: str
    kind: str
    file: Path
    checkpoint: Path | None = None


def measure_speed(
    study: Study, out: Path, jobs: Sequence[Job], results: Sequence[Result], run: Processes, echo: Callable[[str], None]
) -> list[Speed]:
    """Export what is to be timed, and time it; ``OUT/speed.json`` has it.

    Every row that trains is timed by its first finished run; rows that adapt have the graph of the row they start
    from. An export that is there already is kept.

    Args:
        study: with ``timing``.
        out: its folder.
        jobs: its runs.
        results: of finished runs.
        run: starts commands.
        echo: told of every export.

    Raises:
        TrainingError: a command failed; the log beside the graphs has all it said.
    """
    log = out / FOLDER / "speed.log"
    graphs = [*_rows(jobs, results, out), *_untrained(study, out, run, log), *_others(study, out, run, log)]
    for graph in graphs:
        if graph.checkpoint is not None and not graph.file.exists():
            echo(f"exporting {graph.name}")
            _command(run, ["-m", "ptedge", "export", str(graph.checkpoint), "--out", str(graph.file.parent)], log)
    echo(f"timing {len(graphs)} graphs in turn, {study.timing.rounds} rounds")
    files = list(dict.fromkeys(str(graph.file) for graph in graphs))
    words = [str(study.timing.rounds), str(study.timing.threads), *files]
    times = json.loads(_command(run, ["-m", "ptedge.training.study.timing.graphs", *words], log))
    speeds = [_speed(graph, times[str(graph.file)]) for graph in graphs]
    write_json(out / "speed.json", {"threads": study.timing.threads, "graphs": [asdict(one) for one in speeds]})
    return speeds


def _rows(jobs: Sequence[Job], results: Sequence[Result], out: Path) -> list[_Graph]:
    done = {(result.variant, result.seed) for result in results}
    graphs: dict[str, _Graph] = {}
    for job in jobs:
        if not job.row.adapts and (job.row.name, job.seed) in done and job.row.name not in graphs:
            file = out / FOLDER / slug(job.row.name) / MODEL_NAME
            graphs[job.row.name] = _Graph(job.row.name, "row", file, job.folder / "model.pt")
    return list(graphs.values())


def _untrained(study: Study, out: Path, run: Processes, log: Path) -> list[_Graph]:
    graphs = []
    for one in study.timing.untrained:
        settings = json.dumps(to_dict(settings_of_untrained(study, one)), sort_keys=True)
        mark = hashlib.sha256(f"{settings} {one.classes}".encode()).hexdigest()[:8]
        folder = out / FOLDER / f"{slug(one.name)}_{mark}"
        checkpoint = folder.with_suffix(".pt")
        if not checkpoint.exists():
            _command(run, [*_UNTRAINED, "ours", settings, str(one.classes), str(checkpoint)], log)
        graphs.append(_Graph(one.name, "untrained", folder / MODEL_NAME, checkpoint))
    return graphs


def _others(study: Study, out: Path, run: Processes, log: Path) -> list[_Graph]:
    graphs = []
    timing = study.timing
    for name in timing.torchvision:
        size = "x".join(map(str, timing.torchvision_size))
        file = out / FOLDER / f"{slug(name)}_{size}.onnx"
        if not file.exists():
            _command(run, [*_UNTRAINED, "torchvision", name, size, str(file)], log)
        graphs.append(_Graph(f"torchvision {name}", "other", file))
    return [*graphs, *(_Graph(one.name, "other", Path(one.file)) for one in timing.graph)]


def _command(run: Processes, words: Sequence[str], log: Path) -> str:
    status, said, _ = run.run(words, log)
    if status:
        lines = [line for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ptedge: ") if lines else f"exit status {status}"
        raise TrainingError(f"speed could not be measured: {reason} (all it said: {log})")
    return said


def _speed(graph: _Graph, times: Mapping[str, float]) -> Speed:
    size, proposals, gmacs = "", 0, 0.0
    if graph.checkpoint is not None:
        from ptedge.artifacts.checkpoint import load_checkpoint

        from ..cost import image_cost

        checkpoint = load_checkpoint(graph.checkpoint)
        proposals = checkpoint.config.rpn_test_top_n[1]
        size = "x".join(map(str, checkpoint.config.input_size))
        cost = image_cost(checkpoint.config, len(checkpoint.class_names), proposals, half=False)
        gmacs = (cost.frozen + cost.trained + cost.heads) / 2e9  # a multiplication and an addition are two operations
    megabytes = graph.file.stat().st_size / 1e6
    return Speed(graph.name, graph.kind, size, proposals, times["ms"], times["processor_ms"], megabytes, gmacs)
