"""A study's TOML: what is refused, which runs it means, and in what order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from ptedge.errors import ConfigError, InputError
from ptedge.training.study.jobs import list_jobs
from ptedge.training.study.plan import Study, load_study

DATA = """
[data]
root = "."
source = "data.json"
frames = "data.json"
val = "data.json"
oracle = "data.json"
"""
ROWS = """
[[row]]
name = "PT, fast"
kind = "adapt"
config = "adapt.toml"
set = ["optim.steps=7"]
start = "source"
paper = { K2C = 60.2 }

[[row]]
name = "source"
kind = "train"

[[row]]
name = "oracle"
kind = "oracle"
"""


def load(tmp_path: Path, text: str, **arguments: Any) -> Study:
    (tmp_path / "data.json").touch()
    (tmp_path / "adapt.toml").write_text("log_every = 5\n", "utf-8")
    path = tmp_path / "study.toml"
    path.write_text(text, "utf-8")
    return load_study(path, **arguments)


def test_load_study__paths_and_paper(tmp_path: Path) -> None:
    study = load(tmp_path, "seeds = [0, 3]" + DATA + ROWS, overrides=["optim.batch=2"])
    first = study.row[0]
    assert (study.seeds, first.paper, first.config) == ((0, 3), (("K2C", 60.2),), str(tmp_path / "adapt.toml"))
    assert study.data.root == str(tmp_path)
    assert first.set == ("optim.steps=7", "optim.batch=2")  # the command line wins
    assert load(tmp_path, DATA + ROWS, data=tmp_path / "x").data.root == str(tmp_path / "x")


def test_list_jobs__starts_first_and_the_command(tmp_path: Path) -> None:
    jobs = list_jobs(load(tmp_path, "seeds = [0, 3]" + DATA + ROWS), tmp_path / "out")
    assert [job.name for job in jobs] == [
        f"{row}, seed {s}" for s in (0, 3) for row in ("source", "PT, fast", "oracle")
    ]
    source, adapted, oracle = jobs[3:]
    assert adapted.start is source and oracle.start is None and adapted.steps == 7
    assert adapted.folder == tmp_path / "out" / "runs" / "pt_fast" / "seed_3"
    data = str(tmp_path / "data.json")
    start = str(source.folder / "model.pt")
    assert adapted.words[:6] == ("adapt", start, "--target", data, "--source", data)
    assert adapted.words[-4:] == ("--set", "optim.steps=7", "--set", "seed=3")
    assert adapted.words[adapted.words.index("--config") + 1] == str(tmp_path / "adapt.toml")
    assert "--val" in oracle.words and oracle.words[:2] == ("train", data)


def test_list_jobs__chosen_rows_bring_their_start(tmp_path: Path) -> None:
    study = load(tmp_path, DATA + ROWS)
    assert [job.row.name for job in list_jobs(study, tmp_path, ["PT, fast"])] == ["source", "PT, fast"]
    assert [job.row.name for job in list_jobs(study, tmp_path, ["or*"])] == ["oracle"]
    with pytest.raises(ConfigError, match="did you mean 'oracle'"):
        list_jobs(study, tmp_path, ["oracel"])


def test_list_jobs__fingerprint_follows_settings_and_start(tmp_path: Path) -> None:
    def prints(text: str) -> list[str]:
        return [job.fingerprint for job in list_jobs(load(tmp_path, text), tmp_path)]

    source, adapted, oracle = prints(DATA + ROWS)
    assert prints('set = ["workers=1", "curves=false"]' + DATA + ROWS) == [source, adapted, oracle]
    changed = prints(DATA + ROWS.replace('kind = "train"', 'kind = "train"\nset = ["view=weak"]'))
    assert changed[0] != source and changed[1] != adapted and changed[2] == oracle


WRONG = {
    "no rows": (DATA, "at least one"),
    "unknown key": ("seed = 1" + DATA + ROWS, "unknown key 'seed'; did you mean 'seeds'"),
    "unknown kind": (DATA + ROWS.replace('"oracle"', '"orakel"'), "kind is 'orakel'"),
    "unknown start": (DATA + ROWS.replace('start = "source"', 'start = "sorce"'), "did you mean 'source'"),
    "no start": (DATA + ROWS.replace('start = "source"\n', ""), "name the row it starts from"),
    "start of training": (DATA + ROWS + 'start = "source"', "has no start"),
    "itself": (DATA + ROWS.replace('start = "source"', 'start = "PT, fast"'), "circle: PT, fast <- PT, fast"),
    "twice": (DATA + ROWS.replace('"oracle"\nkind', '"Source!"\nkind'), "two rows are called 'Source!'"),
    "baseline": ('baseline = "x"' + DATA + ROWS, "baseline = 'x'"),
    "spread": (DATA + ROWS + '[[spread]]\nname = "tau"\nrows = ["tau 1"]', "spread 'tau'"),
    "a setting": (DATA + ROWS.replace("steps=7", "stebs=7"), "row 'PT, fast': .*stebs"),
    "a value": (DATA + ROWS.replace("steps=7", "steps=-7"), "row 'PT, fast': .*steps is -7"),
    "alignment source-free": (
        DATA + ROWS.replace('"adapt"', '"source_free"').replace('"optim.steps=7"', '"align.method=sw"'),
        "row 'PT, fast': align.method=sw",
    ),
    "a settings file": (DATA + ROWS.replace('"adapt.toml"', '"none.toml"'), "row 'PT, fast': cannot read"),
    "no TOML": ("[", "is not valid TOML"),
}


@pytest.mark.parametrize("name", WRONG)
def test_load_study__refuses(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(ConfigError, match=message) as error:
        load(tmp_path, text)
    assert str(error.value).count("\n") == 0 and "study.toml" in str(error.value)


def test_load_study__missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read study"):
        load_study(tmp_path / "none.toml")


def test_list_jobs__data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--data"):
        list_jobs(load(tmp_path, DATA.replace('frames = "data.json"', 'frames = "none"') + ROWS), tmp_path)
    with pytest.raises(ConfigError, match=re.escape("row 'oracle' needs data.oracle")):
        list_jobs(load(tmp_path, DATA.replace('oracle = "data.json"', "") + ROWS), tmp_path)


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
