from __future__ import annotations

from pathlib import Path

from made_field import collect, policy
from made_page import MODEL, made_counters
from prometheus_client.parser import text_string_to_metric_families

from ptedge.runtime.page.status import RunStatus


def test_metrics__labels_are_escaped() -> None:
    counters = made_counters()
    counters.classes[MODEL["classes"][1]] = 5
    families = list(text_string_to_metric_families(RunStatus(counters, MODEL, True).metrics()))
    labels = [sample.labels.get("class") for family in families for sample in family.samples]
    assert 'a "b"\n\\' in labels


def test_metrics__of_collecting(tmp_path: Path) -> None:
    sink = collect(tmp_path / "f", policy({"random": 1.0}, quota={"images": 2}), count=20)
    status = RunStatus(made_counters(), MODEL, True, collector=sink)
    families = {one.name: one.samples for one in text_string_to_metric_families(status.metrics())}
    counts = {sample.labels["why"]: sample.value for sample in families["ptedge_collected_frames"]}
    assert counts["seen"] == 20 and counts["quota reached"] + counts["kept"] == 20
    assert [(s.labels, s.value) for s in families["ptedge_evicted_frames"]] == [
        ({"strategy": "random"}, counts["evicted"])
    ]
    assert families["ptedge_field_images"][0].value == 2 == counts["kept"] - counts["evicted"]
    assert families["ptedge_field_bytes"][0].value == sink.size
    assert status.to_json()["collected"]["strategies"]["random"]["picked"] == 20
