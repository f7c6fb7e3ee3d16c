"""What every command prints with ``--json`` is what its schema in ptedge/schemas says."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from keys import key_pair
from made_site import made_site
from made_study import made_result
from places import ROOT
from tiny_detector import use_tiny_detector, write_pictures
from tiny_model import tiny_bundle

from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
from ptedge.artifacts.engine_file import EngineRecord
from ptedge.artifacts.estimate import LabelFreeFit, Ridge
from ptedge.cli import COMMANDS, cli
from ptedge.config import to_dict
from ptedge.samples.walk import Row

SCHEMAS = ROOT / "ptedge" / "schemas"
ELSEWHERE = {"benchmark": ROOT / "runtime" / "benchmark" / "benchmark.schema.json"}


def leaves() -> list[str]:
    """Names of all commands, those of groups as ``data check``."""
    found = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        found += [f"{name} {inner}" for inner in command.commands] if isinstance(command, click.Group) else [name]
    return found


FEW = ["optim.steps=2", "optim.batch=2", "workers=0", "curves=false", "choice.enabled=false"]
TINY = ["model.weights=none", "model.input_size=[64,96]"]


SIDE = Ridge(0.2, (0.5,), (-9.0,), (9.0,), 0.1, 50)
AP = Ridge(0.1, (0.4, 0.2), (0.0,) * 2, (1.0,) * 2, 0.05, 50)
FIT = LabelFreeFit(SIDE, SIDE, SIDE, SIDE, AP, AP, 50, 1200, "cluster")


def schema_of(name: str) -> dict[str, Any]:
    path = ELSEWHERE.get(name, SCHEMAS / f"{name.replace(' ', '-')}.json")
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return schema


def write_found(folder: Path) -> Path:
    """Three pictures in which the constant answers of the tiny bundle are right, as COCO."""
    data = write_pictures(folder, 3)
    document = json.loads(data.read_text("utf-8"))
    boxes = [[8, 16, 33, 32], [50, 10, 40, 21]]  # x, y, width, height; ANSWER of tiny_model, a pixel larger
    places = [(i, k) for i in range(3) for k in range(2)]
    document["annotations"] = [
        {"id": 2 * i + k, "image_id": i, "category_id": k + 1, "bbox": boxes[k], "area": 1000, "iscrowd": 0}
        for i, k in places
    ]
    data.write_text(json.dumps(document), "utf-8")
    return data


def sets(*changes: str) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


def commands(keys: tuple[Path, Path]) -> dict[str, list[str]]:
    """A call of each command that works on what the calls before it left."""
    model, bundle = "runs/adapted/model.pt", "bundle"
    return {
        "train": ["source/train.json", "--out", "runs/source", *sets(*FEW[:4], *TINY)],
        "adapt": [
            "runs/source/model.pt",
            "--target",
            "target/images",
            "--source-free",
            "--out",
            "runs/adapted",
            *sets(*FEW),
        ],
        "plot": ["runs/adapted"],
        "report": ["runs/adapted"],
        "eval": [bundle, "found/data.json"],
        "calibrate": [bundle, "found/data.json", "--dry-run"],
        "estimate": ["estimating.pt", "--target", "target/images"],
        "jitter": [bundle, "target/images"],
        "export": [model, "--out", "exported"],
        "drift": [bundle, "many/images"],
        "verify": ["exported", "--against", model],
        "sign": [bundle, "--key", str(keys[0])],
        "run": [bundle, "target/images", "--out", "out", "--collect", "field", "--collect-random", "1"],
        "promote": [bundle, "--to", "deployment", "--seconds", "0"],
        "rollback": ["deployment"],
        "history": ["deployment"],
        "loop": ["gate.toml"],
        "benchmark": [bundle, "--seconds", "0.2", "--warm-up", "0", "--rounds", "2"],
        "field summary": ["field", "--against", bundle],
        "field export": ["field", "--out", "prelabels.json"],
        "bundle push": [bundle, "models"],
        "bundle pull": ["models", "fetched"],
        "field push": ["field", "site"],
        "field pull": ["site", "pulled"],
        "field prune": ["field", "--max-images", "2"],
        "data check": ["source/train.json"],
        "data stats": ["source/train.json"],
        "data convert": ["source/train.json", "--to", "yolo", "--out", "yolo"],
        "data fetch-help": ["kitti"],
        "data fog": ["target/images", "--depth", "depths", "--out", "fog"],
        "shift": ["source/train.json", "foggy/val.json"],
        "inspect": [bundle],
        "doctor": [],
    }


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the commands printed, one after another in one folder."""
    folder = tmp_path_factory.mktemp("json")
    documents: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_detector(patch)
        patch.chdir(folder)
        write_pictures(folder / "source", 6).rename(folder / "source" / "train.json")
        write_pictures(folder / "target", 5, seed=1)
        tiny_bundle(folder / "bundle")
        tiny_bundle(folder / "newer", created="later")
        write_pictures(folder / "many", 25)
        CliRunner().invoke(cli, ["drift", "bundle", "many/images", "--learn"])
        write_found(folder / "found")
        made_site(folder)
        (folder / "depths").mkdir()
        for picture in (folder / "target" / "images").iterdir():
            np.save(folder / "depths" / picture.stem, np.full((64, 96), 20.0))
        for name, words in commands(key_pair(folder)).items():
            if name == "rollback":  # what may be gone back from
                CliRunner().invoke(cli, ["promote", "newer", "--to", "deployment", "--seconds", "0"])
            if name == "estimate":
                fitted = dataclasses.replace(load_checkpoint(Path("runs/source/model.pt")), label_free=FIT)
                save_checkpoint(Path("estimating.pt"), fitted)
            result = CliRunner().invoke(cli, [*name.split(), *words, "--json"])
            documents[name] = json.loads(result.stdout) if result.stdout else f"{result.exception}, {result.stderr}"
    return documents


@pytest.mark.parametrize("name", list(commands((Path(), Path()))))
def test_json__is_what_the_schema_says(name: str, printed: dict[str, Any]) -> None:
    assert not isinstance(printed[name], str), printed[name]
    jsonschema.validate(printed[name], schema_of(name))


def test_json__of_a_build() -> None:
    record = EngineRecord("a.engine", "a" * 64, "b" * 64, "fp16", "10.3.0.26", "12.6", "Orin", "8.7", seconds=3.5)
    jsonschema.validate({"bundle": "b", "new": True, "of": "one graph", "engine": to_dict(record)}, schema_of("build"))


def test_json__of_a_study() -> None:
    jsonschema.validate([made_result("source", 0, 0.5).to_json()], schema_of("study"))


def test_json__of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Row("source only", "clear scenes", {"images": 3, "AP50": 0.5}, None)]
    monkeypatch.setattr("ptedge.samples.walk.Walk.rows", lambda self: rows)
    result = CliRunner().invoke(cli, ["demo", "--out", str(tmp_path / "demo"), "--json"])
    jsonschema.validate(json.loads(result.stdout), schema_of("demo"))


def test_json__every_command_has_it_and_a_schema_and_is_tried() -> None:
    for name in leaves():
        command = cli.get_command(click.Context(cli), name.split()[0])
        if isinstance(command, click.Group):
            command = command.commands[name.split()[1]]
        assert command is not None
        assert "--json" in {option for param in command.params for option in param.opts}, name
    tried = {*commands((Path(), Path())), "build", "study", "demo"}
    assert set(leaves()) == tried
    here = {path.stem for path in SCHEMAS.glob("*.json")} | set(ELSEWHERE)
    assert here == {name.replace(" ", "-") for name in tried}


@pytest.mark.parametrize("name", leaves())
def test_schemas__are_schemas_that_refuse_something(name: str) -> None:
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate("text", schema)


def test_json__nothing_else_on_stdout(printed: dict[str, Any]) -> None:
    """What plot prints for people does not precede the document."""
    assert printed["plot"]["files"] and printed["shift"]["images"] == 6
