"""Where the processor's seconds of a source-free adaptation go, part by part. A script, not a test.

    python tests/bench/source_free_parts.py model.pt FRAMES [--config adapt.toml] [--steps 100] [--set key=value ...]

Runs ``ptedge adapt --source-free`` in this process (``workers=0``, so that preparing images counts too) and adds up the
processor's seconds inside the parts: images, the teacher's answers, the student's forward pass with its losses, the
gradient, the optimiser, the teacher's moving average, monitors, files, and what is looked at when all steps are done.
What is left is the loop itself.
Seconds of the processor, not of the clock: other work on the machine hurts them less.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ptedge.config import load_config
from ptedge.training import adapt as adaptation
from ptedge.training.batches.steps import StepBatches
from ptedge.training.config import AdaptConfig
from ptedge.training.mutual import MutualLearning
from ptedge.training.run_folder import RunFolder
from ptedge.training.watch.monitor_set import MonitorSet
from ptedge.training.watch.supervise import Supervisor

seconds: Counter[str] = Counter()
open_parts: list[str] = []


def timed(part: str, owner: Any, name: str) -> None:
    """Let a method count its seconds under a part; those of a part inside another count for the inner one alone."""
    method: Callable[..., Any] = getattr(owner, name)

    def counting(*given: Any, **named: Any) -> Any:
        start = time.process_time()
        open_parts.append(part)
        try:
            return method(*given, **named)
        finally:
            took = time.process_time() - start
            open_parts.pop()
            seconds[part] += took
            if open_parts:
                seconds[open_parts[-1]] -= took

    setattr(owner, name, counting)


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("frames")
    parser.add_argument("--config", type=Path)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], dest="sets")
    options = parser.parse_args()
    sets = [f"optim.steps={options.steps}", "workers=0", "curves=false", *options.sets]
    config = load_config(AdaptConfig, options.config, sets)
    timed("images", StepBatches, "__getitem__")
    timed("teacher", MutualLearning, "prepare")
    timed("student", MutualLearning, "losses")
    timed("gradient", torch.Tensor, "backward")
    timed("optimiser", getattr(torch.optim, {"adamw": "AdamW", "sgd": "SGD"}[config.optim.optimizer]), "step")
    timed("moving average", MutualLearning, "after_step")
    timed("monitors", MonitorSet, "remember")
    timed("monitors", MonitorSet, "read")
    timed("reference of drift", adaptation, "keep_reference")
    timed("estimate without labels", adaptation, "estimate_target")
    timed("files", RunFolder, "save")
    timed("files", RunFolder, "save_candidate")
    timed("files", Supervisor, "_snapshot")
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF)
        adaptation.adapt(options.checkpoint, options.frames, Path(folder) / "run", config, source=None)
        after = resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    report = {
        "steps": config.optim.steps,
        "processor_s": round(user + system, 2),
        "of_it_in_the_system": round(system, 2),
        "parts": {name: round(value, 2) for name, value in seconds.most_common()},
        "sum_of_parts": round(sum(seconds.values()), 2),
        "page_faults": after.ru_minflt - before.ru_minflt,
        "peak_memory_mib": round(after.ru_maxrss / 1024),
        "threads": torch.get_num_threads(),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
