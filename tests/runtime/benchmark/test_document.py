"""Reports read back: those that are none, and what the reader and the published schema agree on."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import pytest
from made_report import a_report, a_run, schema

from ptedge.errors import ConfigError, InputError
from ptedge.runtime.benchmark.document import PRECISIONS, Report, parse_report, read_report
from ptedge.runtime.benchmark.measure import MEASURED, STAGES


def test_read_report__what_is_none(tmp_path: Path) -> None:
    good = a_report(a_run("cpu", [1.0]))
    path = tmp_path / "report.json"

    def refused(text: str) -> str:
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_report(path)
        assert str(path) in str(caught.value)
        return str(caught.value)

    path.write_text(json.dumps(good))
    assert read_report(path) == parse_report(good, "good")
    assert "no report of ptedge benchmark" in refused("[1]") and "no report" in refused('{"schema": 3}')
    assert "is not a JSON document" in refused("{") and "NaN is no number" in refused('{"a": NaN}')
    assert "of schema ptedge.benchmark/9" in refused(json.dumps(good | {"schema": "ptedge.benchmark/9"}))
    assert "runs[0]: missing precision" in refused(
        json.dumps(good | {"runs": [{k: v for k, v in good["runs"][0].items() if k != "precision"}]})
    )
    assert "nothing was measured" in refused(json.dumps(good | {"runs": []}))
    assert "without rounds" in refused(json.dumps(good | {"runs": [good["runs"][0] | {"per_round": []}]}))
    path.unlink()
    with pytest.raises(InputError, match=r"cannot read .*Write one: ptedge benchmark"):
        read_report(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"precision": "fp8"}, "runs[0]: precision is 'fp8'; it must be one of fp32, fp16, int8"),
        ({"batch": 0}, "runs[0]: batch is 0; it must be at least 1"),
        ({"batch": True}, "runs[0]: batch must be of type int, got True"),
        ({"seconds": -1}, "runs[0]: seconds is -1; it must be at least 0"),
        ({"latency_ms": {}}, "it must have preprocess, infer,"),
        ({"unstable": ["x"]}, "unstable is 'x'; it must be one of preprocess"),
        ({"engines": 1}, "runs[0]: unknown key 'engines'; did you mean 'engine'?"),
        ({"warnings": [1]}, "runs[0]: warnings[0] must be of type str, got 1"),
    ],
)
def test_parse_report__what_does_not_fit(changes: dict[str, Any], words: str) -> None:
    report = a_report(a_run("cpu", [1.0]))
    report["runs"][0] |= changes
    with pytest.raises(ConfigError) as caught:
        parse_report(report, "r.json")
    assert words in str(caught.value)


def fields_of(hint: Any) -> list[Any]:
    """The dataclasses inside a type."""
    if dataclasses.is_dataclass(hint):
        return [hint]
    return [found for inner in typing.get_args(hint) for found in fields_of(inner)]


def test_report__reader_and_schema_have_the_same_fields() -> None:
    """Every object of the schema, and every dataclass, walked together."""
    whole = schema()

    def hold(part: dict[str, Any], cls: Any) -> int:
        hints = typing.get_type_hints(cls)
        required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        assert set(part["properties"]) == set(hints), cls
        assert set(part["required"]) == required and part["additionalProperties"] is False, cls
        count = 1
        for name, about in part["properties"].items():
            if name == "latency_ms":
                assert list(about["properties"]) == list(STAGES)
            inner = about["properties"]["infer"] if name == "latency_ms" else about.get("items", about)
            reference = inner.get("$ref", "").removeprefix("#/$defs/")
            inner = whole["$defs"][reference] if reference else inner
            found = fields_of(hints[name])
            assert bool(found) == ("properties" in inner), (cls, name)
            count += hold(inner, found[0]) if found else 0
        return count

    assert hold(whole, Report) == 13
    run = whole["$defs"]["run"]["properties"]
    assert run["backend"]["enum"] == list(MEASURED) and run["precision"]["enum"] == list(PRECISIONS)
