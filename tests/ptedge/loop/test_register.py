from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from made_site import send_frames

from ptedge.loop.rounds import round_of
from ptedge.loop.run import run_round
from ptedge.loop.settings import Place
from ptedge.loop.work import StepFailedError

Make = Callable[..., Place]


def test_register__without_mlflow_the_extra_is_named(site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    place = site('\n[mlflow]\nmodel = "gate-2"\n')
    send_frames(place.home, 0, 4)
    with pytest.raises(StepFailedError, match=r"ptedge\[mlflow\]"):
        run_round(place, lambda text: None)
    record = round_of(place.folder, 1).record("all")
    assert record is not None and record.state == "done"


@pytest.mark.filterwarnings("ignore")  # those of MLflow are its own
def test_register__a_version_a_round_and_an_alias(site: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow-skinny is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # which newer versions want a word for
    place = site()
    uri = (place.home / "registry").as_uri()
    place = site(f'\n[mlflow]\nmodel = "gate-2"\nuri = "{uri}"\n')
    client = mlflow.MlflowClient(uri, uri)
    for number in (1, 2):
        send_frames(place.home, 4 * number, 4)
        assert run_round(place, lambda text: None)["state"] == "done"
        named = client.get_model_version_by_alias("gate-2", "champion")
        canary = round_of(place.folder, number).record("canary")
        assert canary is not None and named.tags["ptedge.version"] == canary.result["version"]
        assert str(named.version) == str(number)
    (round_of(place.folder, 2).folder / "register.json").unlink()  # as after a kill
    run_round(place, lambda text: None)
    assert len(client.search_model_versions("name = 'gate-2'")) == 2
