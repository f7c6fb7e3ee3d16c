"""One update of the student: losses of all parts of a step on all processes, their gradient, and a guarded step.

However a step's images are shared out, the update is that of one batch: every sum over anchors, proposals and pseudo
boxes is divided by their count in the whole step. With several parts the counts are known only after all of them, so a
first pass without gradients counts; what it costs is a forward pass a part.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Generic

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ptedge.detector.backbone import untracked_statistics
from ptedge.errors import ConfigError

from . import distributed
from .config import OptimConfig
from .losses.equations import Normaliser, own_count
from .optim import checked, set_rates
from .synced_batch_norm import synchronise_batch_norms
from .task import B, P, Task

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SMALLEST_SCALE = 1.0  # of fp16's loss; below, gradients are broken and not just too large for the format


class _Losses(nn.Module, Generic[B, P]):
    """The losses of a part as a module's forward pass: the form in which PyTorch averages gradients over processes."""

    def __init__(self, task: Task[B, P]) -> None:
        super().__init__()
        self.task = task
        self.trained = nn.ModuleList([task.student, *task.others])

    def forward(self, step: int, part: P, normalise: Normaliser) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return self.task.losses(step, part, normalise)


class Updater(Generic[B, P]):
    """Makes updates.

    Args:
        task: gives the losses of a part, once more without gradients where parts must be counted first. BatchNorm
            layers of its student are joined over the processes.
        optimizer: of the student and what is trained beside it.
        optim: learning rates, clipping, parts.
        precision: ``fp32``, ``bf16`` or ``fp16``.

    Raises:
        ConfigError: the GPU cannot do that precision.
    """

    def __init__(
        self,
        task: Task[B, P],
        optimizer: torch.optim.Optimizer,
        optim: OptimConfig,
        precision: str = "fp32",
    ) -> None:
        self.task = task
        self.student = task.student
        self.optimizer = optimizer
        self.optim = optim
        self.device = task.student.pixel_mean.device
        self.dtype = DTYPES[precision]
        if precision == "bf16" and self.device.type == "cuda" and torch.cuda.get_device_capability(self.device)[0] < 8:
            raise ConfigError("this GPU has no bfloat16. Set precision=fp16")
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "fp16")
        self.module: nn.Module = _Losses(task)
        if distributed.size() > 1:
            synchronise_batch_norms(task.student)
            # buffers are the same everywhere already; PyTorch 2.14 has another name for leaving them alone
            names = inspect.signature(DistributedDataParallel.__init__).parameters
            buffers: dict[str, Any] = {
                "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers": False
            }
            # some weights have no part in some losses: anchors while pretraining, box heads in an ablation
            self.module = DistributedDataParallel(self.module, find_unused_parameters=True, **buffers)

    def state(self) -> dict[str, Any]:
        """What a resumed run needs beside weights and momenta."""
        return self.scaler.state_dict()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up what :meth:`state` gave."""
        if self.scaler.is_enabled() and state:
            self.scaler.load_state_dict(dict(state))

    def __call__(self, step: int, given: Sequence[B]) -> tuple[dict[str, float], dict[str, Any]]:
        """One update.

        Args:
            step: counted from 0.
            given: what each of this process's parts is given.

        Returns:
            Each loss, their ``loss`` and the ``grad_norm`` before clipping, of the whole step; and the numbers of this
            process's last part.

        Raises:
            TrainingError: a loss or the gradient is not finite; the weights are then unchanged.
        """
        set_rates(self.optimizer, step, self.optim)
        self.optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            parts = [self.task.prepare(batch) for batch in given]
        normalise = self._normaliser(step, parts)
        terms: list[Tensor] = []
        names: list[str] = []
        numbers: dict[str, Any] = {}
        for i, part in enumerate(parts):
            with self._gradients_stay_here(i < len(parts) - 1):
                with self._autocast():
                    losses, numbers = self.module(step, part, normalise)
                names = list(losses)
                stacked = torch.stack(list(losses.values()))
                terms.append(stacked.detach())
                self.scaler.scale(stacked.sum() / len(parts)).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimizer)
        norm = torch.nn.utils.clip_grad_norm_(self.student.parameters(), self.optim.clip)
        mean = torch.stack(terms).mean(dim=0)
        told = torch.cat([mean, norm.reshape(1)]).tolist()  # the one moment at which the CPU waits for a GPU
        told = [value / distributed.size() for value in distributed.total(told)]
        try:
            named = dict(zip([*names, "grad_norm"], told, strict=True))
            values = checked(named, step, infinite_gradient=self._may_skip())
            self.scaler.step(self.optimizer)
        finally:
            self.scaler.update()  # also for a caller that goes on after an error
        return values, numbers

    def _may_skip(self) -> bool:
        """With fp16 a gradient may be too large for the format: the step is left out and the loss scaled down."""
        return self.scaler.is_enabled() and self.scaler.get_scale() >= SMALLEST_SCALE

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    @contextlib.contextmanager
    def _gradients_stay_here(self, yes: bool) -> Any:
        """Processes average their gradients once a step, with the last part."""
        with warnings.catch_warnings():
            # weights in channels-last layout cost the averaging a copy; torch says so once
            warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
            if yes and isinstance(self.module, DistributedDataParallel):
                with self.module.no_sync():
                    yield
            else:
                yield

    def _normaliser(self, step: int, parts: list[P]) -> Normaliser:
        """What sums of a part are divided by, so that the mean over all parts is that over the step's images."""
        count = len(parts) * distributed.size()
        if count == 1:
            return own_count
        if len(parts) == 1:
            return lambda name, value: max(distributed.total([value])[0], 1.0) / count
        counts: Counter[str] = Counter()

        def note(name: str, value: int) -> float:
            counts[name] += value
            return own_count(name, value)

        with torch.no_grad(), untracked_statistics(self.student), self._autocast():
            for part in parts:
                self.task.losses(step, part, note)
        names = sorted(counts)
        totals = dict(zip(names, distributed.total([counts[name] for name in names]), strict=True))
        return lambda name, value: max(totals[name], 1.0) / count
