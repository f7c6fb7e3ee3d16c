from __future__ import annotations

from made_page import MODEL, made_counters
from prometheus_client.parser import text_string_to_metric_families

from ptedge.runtime.page.status import RunStatus


def test_metrics__labels_are_escaped() -> None:
    counters = made_counters()
    counters.classes[MODEL["classes"][1]] = 5
    families = list(text_string_to_metric_families(RunStatus(counters, MODEL, True).metrics()))
    labels = [sample.labels.get("class") for family in families for sample in family.samples]
    assert 'a "b"\n\\' in labels
