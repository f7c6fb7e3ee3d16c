"""Several processes that train one model: who this one is, and how they agree. Alone, every function is at home.

``torchrun`` starts the processes and tells each its number; :func:`joined` makes a group of them: gloo between CPUs,
NCCL between GPUs. The first process alone writes files and speaks.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
import torch
from torch import distributed as dist

from ptedge.errors import ConfigError, PtedgeError, TrainingError

FAILED = "ptedge/failed"  # counts the processes that gave up, in the store that all of them see


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if size() > 1 else 0


def size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def local_rank() -> int:
    """Number of this process on its machine, which is the number of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0")) if size() > 1 else 0


def local_size() -> int:
    """How many of the processes are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", str(size()))) if size() > 1 else 1


def is_main() -> bool:
    """Whether this process writes files and speaks."""
    return rank() == 0


def total(values: Sequence[float]) -> list[float]:
    """Sums of numbers over all processes, which give equally many in equal order."""
    if size() == 1:
        return list(values)
    numbers = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(numbers)
    return list(numbers.tolist())


def any_of(flag: bool) -> bool:
    """Whether any process says yes."""
    return total([float(flag)])[0] > 0


def largest(number: int) -> int:
    """The largest number that any process says."""
    return max(int(one) for one in gather(number))


def gather(value: Any) -> list[Any]:
    """What every process says, in the order of their numbers."""
    if size() == 1:
        return [value]
    values: list[Any] = [None] * size()
    dist.all_gather_object(values, value)
    return values


def mean_numbers(numbers: dict[str, Any]) -> dict[str, Any]:
    """Means over all processes of the numbers that all of them have; anything else is as the first process says.

    All processes get the same answer, so what they decide by it is the same.
    """
    numbers = {k: float(v) if isinstance(v, torch.Tensor) and v.ndim == 0 else v for k, v in numbers.items()}
    if size() == 1:
        return numbers
    everyone: list[dict[str, Any]] = gather(numbers)
    answer = dict(everyone[0])
    for name, value in answer.items():
        if isinstance(value, float) and all(isinstance(one.get(name), (int, float)) for one in everyone):
            answer[name] = sum(one[name] for one in everyone) / len(everyone)
    return answer


def say(text: str) -> None:
    """A line on stderr, from the first process alone."""
    if is_main():
        click.echo(text, err=True)


def wait_for_all() -> None:
    """Return when all processes have come here."""
    if size() > 1:
        total([0.0])


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Inside, the processes that ``torchrun`` started are one group; a lone process notices nothing.

    Raises:
        PtedgeError: of the first process that fails. The others end with status 1 and without a word.
        ConfigError: this PyTorch cannot do it.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or size() > 1:
        yield
        return
    store, number, count = _join()
    try:
        _check_gpus(local_size())
        with _quiet(number > 0):
            yield
    except Exception as error:
        if not _first_to_fail(store):
            time.sleep(1)  # the launcher ends all when one ends: let the first one finish its sentence
            raise SystemExit(1) from None
        if isinstance(error, PtedgeError) and number:
            raise type(error)(f"process {number} of {count}: {error}") from error
        if _is_lost_peer(error):
            raise TrainingError(
                f"process {number} of {count} lost another one, which was killed or ran out of memory. "
                f"Continue from the last checkpoint with --resume"
            ) from None
        raise
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


def _join() -> tuple[Any, int, int]:
    """The store that all processes see, the number of this one, and how many there are."""
    if not dist.is_available() or not dist.is_gloo_available():
        raise ConfigError("this PyTorch has no gloo, which several processes need to agree. Start one process")
    from torch.distributed.rendezvous import rendezvous

    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    try:
        store, number, count = next(iter(rendezvous("env://")))
        dist.init_process_group(backend, store=store, rank=number, world_size=count)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(
            f"cannot join the other processes that WORLD_SIZE={os.environ['WORLD_SIZE']} speaks of: "
            f"{str(error).splitlines()[0]}. Start them with torchrun, or unset WORLD_SIZE"
        ) from None
    return store, number, count


def _check_gpus(wanted: int) -> None:
    found = torch.cuda.device_count()
    if 0 < found < wanted:
        raise ConfigError(f"{wanted} processes on this machine need a GPU each, and it has {found}. Start fewer")


def _first_to_fail(store: Any) -> bool:
    try:
        return bool(store.add(FAILED, 1) == 1)
    except Exception:  # the store went with the process that held it, which has spoken
        return False


def _is_lost_peer(error: Exception) -> bool:
    words = ("gloo", "connection", "nccl", "peer", "socket")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


@contextlib.contextmanager
def _quiet(yes: bool) -> Iterator[None]:
    if not yes:
        yield
        return
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield
