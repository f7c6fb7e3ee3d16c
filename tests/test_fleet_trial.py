"""Twenty of the devices that ``tests/bench/fleet.py`` has by the thousand."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from fleet_trial import Fleet, fleet_trial, shared_clients
from servers.buckets import address


@pytest.mark.parametrize("kind", ["rclone", "moto"])
def test_fleet__no_frame_lost_and_the_bad_version_stays_at_the_canary(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("bucket_keys")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    endpoint, run = request.getfixturevalue(f"{kind}_server"), uuid.uuid4().hex
    fleet = Fleet(20, tmp_path, lambda name: address(endpoint, f"{run}/{name}"), poll=0.05, faults=0.02)
    with shared_clients(fleet.meter):
        fleet_trial(fleet, 2)
    assert fleet.troubles == []
    assert {device.channel for device in fleet.devices} == {"canary", "first", "rest"}
