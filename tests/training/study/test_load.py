"""A study's TOML: what it means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_study import DATA_TOML, ROWS_TOML, load_text
from places import ROOT

from ptedge.errors import ConfigError
from ptedge.training.study.jobs import list_jobs
from ptedge.training.study.load import load_study, settings_of
from ptedge.training.study.plan import Sweep


def test_load_study__paths_and_paper(tmp_path: Path) -> None:
    study = load_text(tmp_path, "seeds = [0, 3]" + DATA_TOML + ROWS_TOML, overrides=["optim.batch=2"])
    first = study.row[0]
    assert (study.seeds, first.paper, first.config) == ((0, 3), (("K2C", 60.2),), str(tmp_path / "adapt.toml"))
    assert study.data.root == str(tmp_path)
    assert first.set == ("optim.steps=7", "optim.batch=2")  # the command line wins
    frozen = load_text(tmp_path, DATA_TOML + ROWS_TOML, overrides=["model.frozen_stages=3"])
    assert [row.set for row in frozen.row] == [
        ("optim.steps=7",),
        ("model.frozen_stages=3",),
        ("model.frozen_stages=3",),
    ]
    assert load_text(tmp_path, DATA_TOML + ROWS_TOML, data=tmp_path / "x").data.root == str(tmp_path / "x")


TWO_OF_ONE_KIND = """
[[row]]
name = "first"
kind = "oracle"
sweep = {}

[[row]]
name = "second"
kind = "oracle"
sweep = {}
"""
WRONG = {
    "no rows": (DATA_TOML, "at least one"),
    "unknown key": ("seed = 1" + DATA_TOML + ROWS_TOML, "unknown key 'seed'; did you mean 'seeds'"),
    "unknown kind": (DATA_TOML + ROWS_TOML.replace('"oracle"', '"orakel"'), "kind is 'orakel'"),
    "unknown start": (DATA_TOML + ROWS_TOML.replace('start = "source"', 'start = "sorce"'), "did you mean 'source'"),
    "no start": (DATA_TOML + ROWS_TOML.replace('start = "source"\n', ""), "name the row it starts from"),
    "start of training": (DATA_TOML + ROWS_TOML + 'start = "source"', "has no start"),
    "itself": (DATA_TOML + ROWS_TOML.replace('start = "source"', 'start = "PT, fast"'), "circle: PT, fast <- PT, fast"),
    "twice": (DATA_TOML + ROWS_TOML.replace('"oracle"\nkind', '"Source!"\nkind'), "two rows are called 'Source!'"),
    "baseline": ('baseline = "x"' + DATA_TOML + ROWS_TOML, "baseline = 'x'"),
    "spread": (DATA_TOML + ROWS_TOML + '[[spread]]\nname = "tau"\nrows = ["tau 1"]', "spread 'tau'"),
    "beside": ('beside = ["x"]' + DATA_TOML + ROWS_TOML, "beside 'x'"),
    "one point twice": (
        DATA_TOML + TWO_OF_ONE_KIND.format("{axis = 'tau', value = 1}", "{axis = 'tau', value = 1.0}"),
        "rows 'first' and 'second', both oracle, have one point, tau = 1",
    ),
    "an axis twice": (
        DATA_TOML + TWO_OF_ONE_KIND.format("[{axis = 'tau', value = 1}, {axis = 'tau', value = 2}]", "[]"),
        "row 'first' has two values on the axis 'tau'",
    ),
    "a value of words": (
        DATA_TOML + TWO_OF_ONE_KIND.format("{axis = 'tau', value = 'one'}", "[]"),
        r"row 'first': sweep\[0\]: value must be of type float, got 'one'",
    ),
    "a value that is a switch": (
        DATA_TOML + TWO_OF_ONE_KIND.format("{axis = 'tau', value = true}", "[]"),
        "value must be of type float, got True",
    ),
    "a value without end": (
        DATA_TOML + TWO_OF_ONE_KIND.format("{axis = 'tau', value = inf}", "[]"),
        "value is inf; a point of a plot has a finite one",
    ),
    "an axis without name": (DATA_TOML + TWO_OF_ONE_KIND.format("{axis = ' ', value = 1}", "[]"), "axis is empty"),
    "no value": (DATA_TOML + TWO_OF_ONE_KIND.format("{axis = 'tau'}", "[]"), "missing value"),
    "a sweep of words": (DATA_TOML + TWO_OF_ONE_KIND.format("'tau 0.25'", "[]"), "sweep is a list"),
    "a setting": (DATA_TOML + ROWS_TOML.replace("steps=7", "stebs=7"), "row 'PT, fast': .*stebs"),
    "a value": (DATA_TOML + ROWS_TOML.replace("steps=7", "steps=-7"), "row 'PT, fast': .*steps is -7"),
    "alignment source-free": (
        DATA_TOML + ROWS_TOML.replace('"adapt"', '"source_free"').replace('"optim.steps=7"', '"align.method=sw"'),
        "row 'PT, fast': align.method=sw",
    ),
    "a settings file": (DATA_TOML + ROWS_TOML.replace('"adapt.toml"', '"none.toml"'), "row 'PT, fast': cannot read"),
    "no TOML": ("[", "is not valid TOML"),
}


@pytest.mark.parametrize("name", WRONG)
def test_load_study__refuses(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(ConfigError, match=message) as error:
        load_text(tmp_path, text)
    assert str(error.value).count("\n") == 0 and "study.toml" in str(error.value)


def test_load_study__missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read study"):
        load_study(tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["carla_to_road", "smoke"])
def test_samples__are_good_studies(name: str, tmp_path: Path) -> None:
    study = load_study(ROOT / "samples" / "studies" / f"{name}.toml", tmp_path)
    jobs = list_jobs(study, tmp_path, check_data=False)
    assert len(jobs) == len(study.row) * len(study.seeds)
    assert len({job.fingerprint for job in jobs}) == len(jobs)  # no row is another's twin


def test_docs__the_example_is_a_good_study(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "studies.md").read_text("utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    for name in ("train.toml", "source_free.toml"):
        (tmp_path / name).touch()
    (tmp_path / "study.toml").write_text(text, "utf-8")
    study = load_study(tmp_path / "study.toml")
    assert len(list_jobs(study, tmp_path, check_data=False)) == 12


def test_load_study__one_sweep_or_several(tmp_path: Path) -> None:
    rows = TWO_OF_ONE_KIND.format(
        "{axis = 'tau', value = 1}", "[{axis = 'tau', value = 0.5}, {axis = 'lambda', value = 1}]"
    )
    first, second = load_text(tmp_path, DATA_TOML + rows).row
    assert first.sweep == (Sweep("tau", 1.0),)
    assert second.sweep == (Sweep("tau", 0.5), Sweep("lambda", 1.0))


def test_load_study__one_point_for_each_kind(tmp_path: Path) -> None:
    rows = TWO_OF_ONE_KIND.replace('"oracle"', '"train"', 1).format(*["{axis = 'tau', value = 1}"] * 2)
    assert [row.sweep for row in load_text(tmp_path, DATA_TOML + rows).row] == [(Sweep("tau", 1.0),)] * 2


SETTINGS = {
    "tau": ("tau_cls", "tau_box"),
    "lambda": ("focal_cls", "focal_box"),
    "score threshold": ("score_threshold",),
}


def test_samples__a_point_is_what_the_row_sets(tmp_path: Path) -> None:
    study = load_study(ROOT / "samples" / "studies" / "carla_to_road.toml", tmp_path)
    points = [(row, sweep) for row in study.row for sweep in row.sweep]
    assert len(points) == 13
    for row, sweep in points:
        pseudo = settings_of(study, row).pseudo  # type: ignore[union-attr]
        assert {getattr(pseudo, name) for name in SETTINGS[sweep.axis]} == {sweep.value}, row.name


def test_load_study__a_convention_is_one_for_the_whole_table(tmp_path: Path) -> None:
    study = load_text(tmp_path, 'convention = "coco"\n' + DATA_TOML + ROWS_TOML)
    assert study.convention == "coco" and study.set == ("convention=coco",)
    assert all(settings_of(study, row).convention == "coco" for row in study.row)
    with pytest.raises(ConfigError, match=r"row 'PT, fast' has the setting convention=coco, the study voc"):
        load_text(tmp_path, 'set = ["convention=coco"]\n' + DATA_TOML + ROWS_TOML)
    with pytest.raises(ConfigError, match="convention is 'voc07'; it must be one of"):
        load_text(tmp_path, 'convention = "voc07"\n' + DATA_TOML + ROWS_TOML)


def test_load_study__what_is_counted_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key 'counted'"):
        load_text(tmp_path, "counted = []\n" + DATA_TOML + ROWS_TOML)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name = "PT fast"', "timing.untrained 'PT fast' has the name of another"),
        ('name = "light"\nset = ["model.roi_hidden=1"]', "timing.untrained 'light': .*roi_hidden"),
        ('name = "?"', "needs a letter or digit"),
    ],
)
def test_load_study__what_is_timed_is_checked(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_text(tmp_path, DATA_TOML + ROWS_TOML + "[[timing.untrained]]\n" + text)


def test_load_study__files_of_what_is_timed(tmp_path: Path) -> None:
    text = (
        '[[timing.untrained]]\nname = "light"\nconfig = "light.toml"\n[[timing.graph]]\nname = "x"\nfile = "x.onnx"\n'
    )
    (tmp_path / "light.toml").write_text("[model]\nroi_hidden = 64\n", "utf-8")
    timing = load_text(tmp_path, DATA_TOML + ROWS_TOML + text).timing
    assert timing.untrained[0].config == str(tmp_path / "light.toml")
    assert timing.graph[0].file == str(tmp_path / "x.onnx")
    assert timing.rounds == 0
