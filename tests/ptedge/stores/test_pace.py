"""A limit to the bytes a second."""

from __future__ import annotations

import pytest

from ptedge.stores.body import PacedBody
from ptedge.stores.pace import Pace


def waits(rate: float | None) -> tuple[Pace, list[float]]:
    waited: list[float] = []
    return Pace(rate, lambda: sum(waited), waited.append), waited


def test_spend__waits_for_what_went_before() -> None:
    pace, waited = waits(100.0)
    for _ in range(10):
        pace.spend(50)
    assert sum(waited) == pytest.approx(5.0)


def test_spend__time_in_which_nothing_went_is_not_saved_up() -> None:
    now = [0.0]
    waited: list[float] = []
    pace = Pace(100.0, lambda: now[0], waited.append)
    now[0] = 1000.0
    pace.spend(100)
    assert waited == [pytest.approx(0.75)]


def test_spend__without_a_limit_never_waits() -> None:
    pace, waited = waits(None)
    pace.spend(1 << 40)
    assert waited == []


def test_paced_body__reading_for_the_signature_takes_no_time_of_the_line() -> None:
    pace, waited = waits(100.0)
    body = PacedBody(bytes(200), pace)
    assert len(body.read()) == 200 and waited == []
    body.seek(0)
    body.sending = True
    while body.read(50):
        pass
    assert sum(waited) == pytest.approx(2.0)
