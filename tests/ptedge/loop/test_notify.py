from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import stand_in
from made_site import send_frames

from ptedge.loop.rounds import round_of
from ptedge.loop.run import run_round
from ptedge.loop.settings import Place
from ptedge.loop.work import StepFailedError

Make = Callable[..., Place]
KEEPS = "import sys, pathlib; open('told.jsonl', 'a').write(sys.stdin.read() + '\\n')"


def notified(code: str, timeout: float = 20) -> str:
    command = json.dumps([sys.executable, "-c", code])
    return f"\n[notify]\ncommand = {command}\ntimeout = {timeout}\n"


def told(place: Place) -> list[dict[str, object]]:
    return [json.loads(line) for line in (place.home / "told.jsonl").read_text().splitlines()]


def test_notify__each_event_once(site: Make) -> None:
    place = site(notified(KEEPS))
    send_frames(place.home, 0, 4)
    done = run_round(place, lambda text: None)
    assert [one["event"] for one in told(place)] == ["adapted", "canary", "everywhere"]
    assert done["notifications"] == {"sent": 3, "failed": 0}
    first = told(place)[0]
    assert (first["site"], first["round"], first["step"]) == ("gate", 1, "adapt") and first["details"]
    run_round(place, lambda text: None)
    assert len(told(place)) == 3


def test_notify__what_was_not_told_before_a_kill_is_told_by_the_next_call(
    site: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = site(notified(KEEPS))
    send_frames(place.home, 0, 4)

    def killed(*values: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ptedge.loop.run.tell", killed)
        with pytest.raises(KeyboardInterrupt):
            run_round(place, lambda text: None)
    assert round_of(place.folder, 1).record("adapt") is not None and not (place.home / "told.jsonl").exists()
    run_round(place, lambda text: None)
    assert [one["event"] for one in told(place)] == ["adapted", "canary", "everywhere"]


def test_notify__refused_and_failed(site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    place = site(notified(KEEPS))
    send_frames(place.home, 0, 4)
    (place.home / "source.pt").rename(place.home / "away.pt")
    with pytest.raises(StepFailedError, match="cannot be read"):
        run_round(place, lambda text: None)
    (place.home / "away.pt").rename(place.home / "source.pt")
    monkeypatch.setenv(stand_in.VERIFIED, "no")
    run_round(place, lambda text: None)
    assert [one["event"] for one in told(place)] == ["failed", "adapted", "refused"]


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        (notified("raise SystemExit(3)"), "exit status 3"),
        (notified("import time; time.sleep(60)", 0.2), "more than notify.timeout = 0.2 seconds"),
        ('\n[notify]\ncommand = ["/no/such/program"]\n', "cannot be started"),
    ],
)
def test_notify__a_command_that_fails_stops_nothing(site: Make, settings: str, wrong: str) -> None:
    place = site(settings)
    send_frames(place.home, 0, 4)
    said: list[str] = []
    done = run_round(place, said.append)
    assert done["state"] == "done" and done["notifications"] == {"sent": 0, "failed": 3}
    assert "notify.command failed for 'adapted'" in said
    about = json.loads(next((Path(done["folder"]) / "told").glob("adapt-*.json")).read_text())
    assert wrong in about["wrong"]
