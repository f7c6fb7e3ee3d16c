"""The protocols of the paper's benchmarks, end to end on a dozen made images a side, inside this process."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from made_benchmarks import write_benchmark
from places import ROOT
from study_inside import main, run_inside
from training_shell import MODEL

from ptedge.training.study.load import load_study, settings_of
from ptedge.training.study.process import Processes

PROTOCOLS = ROOT / "samples" / "protocols"
NAMES = ("c2f", "c2f_002", "c2b", "k2c", "s2c")
TINY = ["optim.steps=1", "optim.batch=1", "optim.warmup=0", "workers=0", "log_every=1", "curves=false"]
TINY += ["sampling.roi_count=16", "optim.optimizer=sgd"]
# of the paper, docs/method.md section 9: source only, oracle, PT, PT source-free
PAPER = {
    "c2f": (31.0, 46.3, 47.1, 38.7),
    "c2f_002": (23.2, 43.5, 42.7, None),
    "c2b": (26.9, 51.7, 34.9, 28.1),
    "k2c": (46.4, 66.4, 60.2, 59.6),
    "s2c": (44.5, 66.4, 55.1, 54.1),
}
ROWS = ("source only", "oracle", "PT", "PT source-free")


@pytest.mark.parametrize("name", NAMES)
def test_protocols__are_the_papers(name: str) -> None:
    study = load_study(PROTOCOLS / f"{name}.toml")
    rows = {row.name: row for row in study.row}
    assert tuple(dict(rows[row].paper).get("paper") for row in ROWS) == PAPER[name]
    assert {"mean teacher", "source only, vanilla", "source only, weak view"} < set(rows)
    train, adapt = settings_of(study, rows["source only"]), settings_of(study, rows["PT"])
    assert (train.model.backbone, train.optim.batch, adapt.optim.batch) == ("vgg16", 16, 16)  # type: ignore[union-attr]
    assert (train.optim.steps + adapt.optim.steps, train.optim.lr) == (30000, 0.016)
    assert study.convention == "devkit-labelled"
    assert [one.part for one in study.described] == ["source", "oracle", "val"]
    told = [one.told_by for one in study.published] + [one.official.told_by for one in study.described if one.official]
    assert all(told)
    assert any(one.method == "highest found" and "not confirmed" in one.told_by for one in study.published)


def tiny_protocol(name: str, folder: Path) -> Path:
    """The shipped files with a tiny model in place of VGG16; data, classes, rows and numbers stay."""
    shutil.copytree(PROTOCOLS, folder)
    tables = "[model]\n" + "\n".join(
        line.removeprefix("model.") if "backbone" not in line else f'backbone = "{line.partition("=")[2]}"'
        for line in MODEL
        if "weights" not in line
    )
    for file in ("train.toml", "oracle.toml"):
        (folder / file).write_text(f'{tables}\nweights = "none"\n', "utf-8")
    path = folder / f"{name}.toml"
    path.write_text(path.read_text("utf-8").replace("[608, 1344]", "[64, 96]"), "utf-8")
    return path


def study(path: Path, data: Path, out: Path, *words: str) -> tuple[int, str, str]:
    sets = [word for value in TINY for word in ("--set", value)]
    return main(["study", path, "--data", data, "--out", out, *sets, *words])


@pytest.mark.parametrize("name", NAMES)
def test_protocols__end_to_end_on_made_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "run", run_inside)
    path, data, out = tiny_protocol(name, tmp_path / "protocols"), tmp_path / "data", tmp_path / "out"
    write_benchmark(name, data)
    status, _, err = study(path, data, out)
    assert status == 1 and err.count("\n") == 1 and "give --allow" in err  # a dozen images are no benchmark
    assert f"val has {18 if name == 'c2f' else 8 if name == 'c2b' else 6} images, not" in err
    assert not (out / "runs").exists()

    wanted = [row.name for row in load_study(path).row] if name == "c2f" else list(ROWS)
    status, table, err = study(path, data, out, "--allow", *(word for row in wanted for word in ("--rows", row)))
    assert status == 0, err
    head = next(line for line in table.splitlines() if line.startswith("| row"))
    columns = {"seeds", "AP50, last", "AP50, best by target labels", "AP75", "AP", "AP50 minus source only", "paper"}
    columns |= {"gap closed", "within 1 sigma", "seconds"}
    assert columns <= {cell.strip() for cell in head.split("|")}
    assert "VOC development kit, images without objects left out" in table
    assert "**These are not the benchmark's data**, so no number above stands for it" in table
    assert "## Published by others" in table and "Nothing in this table was measured here" in table
    assert ("## AP50 by class" in table) == (name not in ("k2c", "s2c"))
    found = [json.loads(line) for line in (out / "results.jsonl").read_text("utf-8").splitlines()]
    assert [one["variant"] for one in found] == wanted
    check_frames(name, (out / "data" / "frames.txt").read_text("utf-8").splitlines())


def check_frames(name: str, frames: list[str]) -> None:
    """What is adapted to: the images of the target's training part, of these densities and hours."""
    count = {"c2f": 36, "c2b": 8}.get(name, 12)
    assert len(frames) == len(set(frames)) == count
    pattern = {
        "c2f": r"/leftImg8bit_foggy/train/\w+/\w+_leftImg8bit_foggy_beta_0\.(005|01|02)\.png",
        "c2f_002": r"/leftImg8bit_foggy/train/\w+/\w+_leftImg8bit_foggy_beta_0\.02\.png",
        "c2b": r"/images/100k/train/t[0-9a-f-]+\.jpg",
    }.get(name, r"/leftImg8bit/train/\w+/\w+_leftImg8bit\.png")
    assert all(re.search(pattern + "$", frame) for frame in frames)
