"""What a lone process answers, and a launcher that is not there. Several processes are in test_processes."""

from __future__ import annotations

import pytest
import torch

from ptedge.errors import ConfigError
from ptedge.training import distributed


def test_alone__every_function_is_at_home() -> None:
    assert (distributed.rank(), distributed.size(), distributed.local_rank(), distributed.local_size()) == (0, 1, 0, 1)
    assert distributed.is_main()
    assert distributed.total([1.5, 2.0]) == [1.5, 2.0]
    assert distributed.any_of(True) and not distributed.any_of(False)
    assert distributed.gather({"a": 1}) == [{"a": 1}]
    assert distributed.mean_numbers({"a": torch.tensor(2.0), "b": [1, 2]}) == {"a": 2.0, "b": [1, 2]}
    distributed.wait_for_all()


def test_joined__one_process_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    with distributed.joined():
        assert distributed.size() == 1


def test_joined__a_number_of_processes_without_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=r"WORLD_SIZE=2 speaks of: .*RANK.*torchrun"), distributed.joined():
        pass


def test_mean_numbers__of_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"a": 1.0, "b": "x", "c": 4.0, "d": None}, {"a": 3.0, "b": "y", "d": 2.0}]
    monkeypatch.setattr(distributed, "size", lambda: 2)
    monkeypatch.setattr(distributed, "gather", lambda value: answers)
    assert distributed.mean_numbers(answers[1]) == {"a": 2.0, "b": "x", "c": 4.0, "d": None}
