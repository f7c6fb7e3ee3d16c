"""Whole rounds with stand-ins for the workshop; frames, gate, deployments and histories are real."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stand_in
from made_deployments import numbered_bundle, promoted
from made_site import send_frames

from ptedge.errors import InputError, OutputError
from ptedge.folders import hold_folder
from ptedge.loop.look import look
from ptedge.loop.rounds import STEPS, round_of, rounds_of
from ptedge.loop.run import give_up, run_round
from ptedge.loop.settings import Place, read_site
from ptedge.loop.work import StepFailedError
from ptedge.runtime.deployment.change import rollback
from ptedge.runtime.deployment.history import Entry, append, now
from ptedge.runtime.deployment.place import Deployment

Make = Callable[..., Place]


def go(place: Place) -> dict[str, Any]:
    return run_round(place, lambda text: None)


def soaking(site: Make) -> Place:
    """A site whose canary has a version on probation, after a first one that went everywhere."""
    place = site()
    send_frames(place.home, 0, 4)
    assert go(place)["state"] == "done"
    text = place.file.read_text().replace("kept = false", "kept = true")
    place.file.write_text(text)
    place = read_site(place.file)
    send_frames(place.home, 4, 4)
    assert go(place)["state"] == "soaking"
    return place


def keep(place: Path, frames: int = 100) -> None:
    """What a run of the canary writes at the end of a probation."""

    def entry(state: Any) -> Entry:
        version = str(state.version)
        return Entry(
            state.number + 1, "keep", version, version, now(), "", automatic=True, figures={"frames": float(frames)}
        )

    append(Deployment(place).store, entry)


def test_run_round__from_frames_to_every_deployment(site: Make) -> None:
    place = site()
    assert go(place)["state"] == "waiting"
    send_frames(place.home, 0, 6)
    done = go(place)
    assert done["state"] == "done" and done["did"] == list(STEPS) and done["round"] == 1
    version = Deployment(place.home / "canary").state().version
    assert version and {Deployment(place.home / n).state().version for n in ("north", "south")} == {version}
    record = round_of(place.folder, 1).record("adapt")
    assert record is not None and record.inputs["checkpoint"] != record.result["checkpoint"]
    assert [words[3] for words in record.commands] == ["adapt"] and record.seconds >= 0
    entry = Deployment(place.home / "north").history()[0]
    assert entry.why == "ptedge loop gate, round 1" and "canary" in entry.origin


def test_run_round__the_same_frames_begin_no_second_round(site: Make) -> None:
    place = site()
    send_frames(place.home, 0, 6)
    go(place)
    again = go(place)
    assert again["round"] == 2 and again["state"] == "waiting"
    assert "0 new frames" in again["why"]
    send_frames(place.home, 3, 5)  # three that were there, two new ones
    assert "2 new frames" in go(place)["why"]


def test_run_round__goes_on_from_the_checkpoint_of_what_runs(site: Make) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    go(place)
    send_frames(place.home, 4, 4)
    go(place)
    first, second = (round_of(place.folder, n).record("adapt") for n in (1, 2))
    assert first is not None and second is not None
    assert second.inputs["checkpoint"] == first.result["checkpoint"]
    third = go(place)
    assert third["state"] == "waiting"
    for name in ("north", "canary", "south"):  # back to the first version everywhere
        rollback(Deployment(place.home / name))
    send_frames(place.home, 8, 4)
    go(place)
    record = round_of(place.folder, 3).record("adapt")
    assert record is not None and record.inputs["checkpoint"] == first.result["checkpoint"]


def test_run_round__a_version_of_another_s_making_is_refused(site: Make) -> None:
    place = site()
    assert promoted(numbered_bundle(place.home / "foreign", 3), place.home / "north").promoted
    send_frames(place.home, 0, 4)
    with pytest.raises(StepFailedError, match="made from the checkpoint of no name"):
        go(place)
    assert json.loads((rounds_of(place.folder)[0].folder / "failures.jsonl").read_text())["step"] == "decide"


@pytest.mark.parametrize(
    ("variable", "value", "step", "word"),
    [
        (stand_in.CHOSEN, "0", "watch", "the model it began with is the best"),
        (stand_in.AP50, "0.3", "estimate", "standard errors less"),
        (stand_in.VERIFIED, "no", "verify", ""),
    ],
)
def test_run_round__what_the_workshop_finds_wrong_goes_nowhere(
    site: Make, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, step: str, word: str
) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    monkeypatch.setenv(variable, value)
    done = go(place)
    assert done["state"] == "refused" and done["steps"][-1]["step"] == step and word in done["why"]
    assert not (place.home / "canary").exists()
    monkeypatch.delenv(variable)
    assert go(place)["round"] == 2


def test_run_round__an_estimate_within_its_errors_is_let_through(site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    monkeypatch.setenv(stand_in.AP50, "0.42")  # 0.5 before; two standard errors are 2 * (0.04^2 + 0.03^2)^0.5 = 0.1
    assert go(place)["state"] == "done"
    record = round_of(place.folder, 1).record("estimate")
    assert record is not None and record.result["allowed_loss"] == pytest.approx(0.1)


def test_run_round__the_gate_s_refusal_ends_the_round(site: Make) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    go(place)
    text = place.file.read_text().replace(
        '"--threads", "1"]', '"--threads", "1", "--max-ms", "0.000001"]\nseconds = 0.01'
    )
    place.file.write_text(text)
    place = read_site(place.file)
    before = Deployment(place.home / "canary").state().version
    send_frames(place.home, 4, 4)
    done = go(place)
    assert done["state"] == "refused" and "the gate: speed" in done["why"]
    assert Deployment(place.home / "canary").state().version == before


def test_decide__drift_is_a_reason(site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    place = site()
    rules = "min_frames = 4\nenough_frames = 0\nmax_days = 0\ndrift = true"
    text = place.file.read_text().replace("min_frames = 4\nenough_frames = 4\ndrift = false", rules)
    place.file.write_text(text)
    place = read_site(place.file)
    send_frames(place.home, 0, 3)
    monkeypatch.setenv(stand_in.DRIFT, "it is dark")
    assert "fewer than decide.min_frames" in go(place)["why"]
    send_frames(place.home, 3, 3)
    monkeypatch.setenv(stand_in.DRIFT, "")
    assert "no drift" in go(place)["why"]
    monkeypatch.setenv(stand_in.DRIFT, "it is dark,it is foggy")
    assert go(place)["state"] == "done"
    record = round_of(place.folder, 1).record("decide")
    assert record is not None and record.why == "drift: it is dark; it is foggy"
    lines = (round_of(place.folder, 1).folder / "decisions.jsonl").read_text().splitlines()
    assert [json.loads(line)["adapt"] for line in lines] == [False, False, True]


def test_decide__a_model_that_does_not_know_what_is_usual_is_no_fault(
    site: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="the real command reads a checkpoint")
    place = site()
    place.file.write_text(place.file.read_text().replace("enough_frames = 4\ndrift = false", "drift = true"))
    place = read_site(place.file)
    monkeypatch.setattr("made_site.WORKSHOP", ("adapt",))  # the real one meets a checkpoint that is none
    send_frames(place.home, 0, 4)
    why = go(place)["why"]
    assert "nothing tells of drift (" in why and "source.pt" in why


def test_soak__waits_until_a_run_has_kept_the_version(site: Make) -> None:
    place = soaking(site)
    waits = go(place)
    assert waits["state"] == "soaking" and waits["did"] == ["soak"] and "no run has kept it" in waits["why"]
    keep(place.home / "canary")
    done = go(place)
    assert done["state"] == "done" and done["did"] == ["soak", "all", "register"]


def test_soak__ends_the_round_where_the_canary_went_back(site: Make) -> None:
    place = soaking(site)
    before = Deployment(place.home / "north").state().version
    rollback(Deployment(place.home / "canary"), why="it finds less", automatic=True)
    done = go(place)
    assert done["state"] == "refused" and "rolled" in done["why"] and "it finds less" in done["why"]
    assert Deployment(place.home / "north").state().version == before
    assert round_of(place.folder, 2).record("soak").event == "rolled back"  # type: ignore[union-attr]


def test_soak__ends_the_round_where_another_version_came(site: Make) -> None:
    place = soaking(site)
    assert promoted(numbered_bundle(place.home / "foreign", 3), place.home / "canary").promoted
    assert "by now" in go(place)["why"]


def test_all__a_deployment_that_rolled_it_back_is_left_alone(site: Make) -> None:
    """As after a kill between the promotions and their record."""
    place = site()
    send_frames(place.home, 0, 4)
    go(place)
    send_frames(place.home, 4, 4)
    go(place)
    one = round_of(place.folder, 2)
    (one.folder / "all.json").unlink()
    (one.folder / "register.json").unlink()
    rollback(Deployment(place.home / "south"), why="by hand")
    numbers = {name: Deployment(place.home / name).state().number for name in ("north", "south")}
    done = go(place)
    assert done["did"] == ["all", "register"] and "1 of 2 deployments" in done["why"] and "by hand" in done["why"]
    assert {name: Deployment(place.home / name).state().number for name in numbers} == numbers


def test_canary__is_promoted_once_also_where_the_record_was_lost(site: Make) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    go(place)
    one = round_of(place.folder, 1)
    for step in ("canary", "soak", "all", "register"):
        (one.folder / f"{step}.json").unlink()
    done = go(place)
    assert done["state"] == "done" and len(Deployment(place.home / "canary").history()) == 1


def test_run_round__several_sources_of_which_one_fails(site: Make) -> None:
    place = site()
    place.file.write_text(place.file.read_text().replace('["store"]', '["store", "field0", "broken"]'))
    place = read_site(place.file)
    (place.home / "broken").mkdir()
    (place.home / "broken" / "something").touch()
    send_frames(place.home, 0, 4)  # field0, and the store: the same frames
    done = go(place)
    assert done["state"] == "done"
    record = round_of(place.folder, 1).record("pull")
    assert record is not None and record.result["frames"] == 4 and list(record.result["troubles"]) == ["broken"]
    assert record.event == "trouble"


def test_run_round__one_at_a_time(site: Make) -> None:
    place = site()
    with hold_folder(place.folder, "ptedge loop gate.toml"), pytest.raises(OutputError, match="in use"):
        go(place)


def test_give_up__ends_the_round(site: Make) -> None:
    with pytest.raises(InputError, match="no round"):
        give_up(site(), "")
    place = soaking(site)
    assert give_up(place, "the camera was moved")["state"] == "given up"
    assert go(place)["round"] == 3


def test_tidy__removes_what_is_large_of_old_rounds(site: Make) -> None:
    place = site()
    place.file.write_text("keep_rounds = 1\n" + place.file.read_text())
    place = read_site(place.file)
    for number in range(2):
        send_frames(place.home, 4 * number, 4)
        go(place)
    first, second = rounds_of(place.folder)
    assert second.model.exists() and not first.run.exists() and not (first.frames / "images").exists()
    assert (first.frames / "frames.jsonl").exists() and first.record("all") is not None
    assert "0 new frames" in go(place)["why"]  # they are known still


def test_look__writes_nothing(site: Make) -> None:
    place = site()
    send_frames(place.home, 0, 4)
    found = look(place)
    assert found["next"] == "pull" and "fetch 4 of store" in found["would"] and "adapt" in found["would"]
    assert not place.folder.exists()
    go(place)
    assert "fetch 0 of store" in look(place)["would"]


def test_look__names_the_step_that_comes(site: Make) -> None:
    assert look(soaking(site))["would"] == "go on with soak"


def test_commands__a_step_may_have_a_program_of_its_own(site: Make) -> None:
    place = site(f"\n[commands]\nadapt = [{json.dumps(sys.executable)}, {json.dumps(stand_in.__file__)}]\n")
    send_frames(place.home, 0, 4)
    assert go(place)["state"] == "done"
    record = round_of(place.folder, 1).record("adapt")
    assert record is not None and record.commands[0][1] == stand_in.__file__


def test_commands__one_that_fails_is_tried_again(site: Make) -> None:
    place = site('\n[commands]\nadapt = ["/no/such/program"]\n')
    send_frames(place.home, 0, 4)
    with pytest.raises(StepFailedError, match="/no/such/program cannot be started"):
        go(place)
    place = site()
    assert go(place)["did"][0] == "adapt"
