"""Which runs a study means, in what order, and from what each starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_study import DATA_TOML, ROWS_TOML, load_text

from ptedge.errors import ConfigError, InputError
from ptedge.training.study.jobs import list_jobs


def test_list_jobs__starts_first_and_the_command(tmp_path: Path) -> None:
    jobs = list_jobs(load_text(tmp_path, "seeds = [0, 3]" + DATA_TOML + ROWS_TOML), tmp_path / "out")
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


def test_list_jobs__later_words_win(tmp_path: Path) -> None:
    text = 'set = ["optim.steps=1", "optim.batch=3"]' + DATA_TOML + ROWS_TOML
    adapted = next(job for job in list_jobs(load_text(tmp_path, text), tmp_path) if job.row.name == "PT, fast")
    sets = [word for flag, word in zip(adapted.words, adapted.words[1:], strict=False) if flag == "--set"]
    assert sets == ["optim.steps=1", "optim.batch=3", "optim.steps=7", "seed=0"] and adapted.steps == 7


def test_list_jobs__chosen_rows_bring_their_start(tmp_path: Path) -> None:
    study = load_text(tmp_path, DATA_TOML + ROWS_TOML)
    assert [job.row.name for job in list_jobs(study, tmp_path, ["PT, fast"])] == ["source", "PT, fast"]
    assert [job.row.name for job in list_jobs(study, tmp_path, ["or*"])] == ["oracle"]
    with pytest.raises(ConfigError, match="did you mean 'oracle'"):
        list_jobs(study, tmp_path, ["oracel"])


def test_list_jobs__fingerprint_follows_settings_and_start(tmp_path: Path) -> None:
    def prints(text: str) -> list[str]:
        return [job.fingerprint for job in list_jobs(load_text(tmp_path, text), tmp_path)]

    source, adapted, oracle = prints(DATA_TOML + ROWS_TOML)
    assert prints('set = ["workers=1", "curves=false"]' + DATA_TOML + ROWS_TOML) == [source, adapted, oracle]
    changed = prints(DATA_TOML + ROWS_TOML.replace('kind = "train"', 'kind = "train"\nset = ["view=weak"]'))
    assert changed[0] != source and changed[1] != adapted and changed[2] == oracle


def test_list_jobs__data_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--data"):
        list_jobs(
            load_text(tmp_path, DATA_TOML.replace('frames = "data.json"', 'frames = "none"') + ROWS_TOML), tmp_path
        )
    with pytest.raises(ConfigError, match=re.escape("row 'oracle' needs data.oracle")):
        list_jobs(load_text(tmp_path, DATA_TOML.replace('oracle = "data.json"', "") + ROWS_TOML), tmp_path)


MORE_ROWS = """
[[row]]
name = "ten"
kind = "source_free"
start = "source"
labels = 10
teacher_boxes = "data.json"
set = ["lambda_target=0"]
"""


def test_list_jobs__labels_drawn_by_seed_and_boxes_of_another_detector(tmp_path: Path) -> None:
    study = load_text(tmp_path, "seeds = [0, 3]" + DATA_TOML + ROWS_TOML + MORE_ROWS)
    one, other = (job for job in list_jobs(study, tmp_path / "out") if job.row.name == "ten")
    labels, data = tmp_path / "out" / "runs" / "ten" / "seed_3.labels.json", str(tmp_path / "data.json")
    assert other.labels == labels
    assert other.draw == ("data", "convert", data, "--draw", "10", "--seed", "3", "--out", str(labels))
    assert other.words[4:9] == ("--source-free", "--labels", str(labels), "--teacher-boxes", data)
    assert one.labels != other.labels
    plain = load_text(tmp_path, DATA_TOML + ROWS_TOML + MORE_ROWS.replace("labels = 10", "labels = 30"))
    (changed,) = (job for job in list_jobs(plain, tmp_path / "out") if job.row.name == "ten")
    assert changed.fingerprint != one.fingerprint


def test_list_jobs__labels_need_the_oracles_and_boxes_their_file(tmp_path: Path) -> None:
    few = MORE_ROWS.replace('teacher_boxes = "data.json"\n', "")
    without = DATA_TOML.replace('oracle = "data.json"', "") + ROWS_TOML.rpartition("[[row]]")[0] + few
    with pytest.raises(ConfigError, match=re.escape("row 'ten' needs data.oracle")):
        list_jobs(load_text(tmp_path, without), tmp_path)
    gone = MORE_ROWS.replace("data.json", "none.json")
    with pytest.raises(InputError, match=r"none\.json does not exist \(teacher_boxes of row 'ten'\)"):
        list_jobs(load_text(tmp_path, DATA_TOML + ROWS_TOML + gone), tmp_path)
    with pytest.raises(ConfigError, match="labels and teacher_boxes are for rows that adapt"):
        load_text(tmp_path, DATA_TOML + ROWS_TOML.replace('kind = "oracle"', 'kind = "oracle"\nlabels = 10'))
