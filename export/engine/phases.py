"""How far a TensorRT builder is, in its own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def watch_phases(tensorrt: Any, config: Any, tell: Callable[[str], None]) -> None:
    """Tell the builder's own phases, where the version tells them (8.6 and later).

    Args:
        tensorrt: the module.
        config: of the builder; its monitor is set.
        tell: takes a line on each phase, and on each tenth of a long one.
    """
    if not hasattr(tensorrt, "IProgressMonitor"):
        return

    class Monitor(tensorrt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            tensorrt.IProgressMonitor.__init__(self)
            self.phases: dict[str, int] = {}

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self.phases[phase_name] = num_steps
            if parent_phase is None or len(self.phases) < 3:
                tell(phase_name)

        def step_complete(self, phase_name: str, step: int) -> bool:
            total = self.phases.get(phase_name, 0)
            if total >= 10 and step % max(1, total // 10) == 0:
                tell(f"{phase_name}, {step} of {total}")
            return True  # go on

        def phase_finish(self, phase_name: str) -> None:
            self.phases.pop(phase_name, None)

    config.progress_monitor = Monitor()
