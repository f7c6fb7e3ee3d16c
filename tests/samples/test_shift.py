"""Made shifts as data: labels stay, what was done is on record, and a seed fixes it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("kornia", reason="kornia is not installed: pip install 'ptedge[shift]'")

from ptedge.data import open_dataset
from ptedge.errors import InputError
from ptedge.frames.images import read_image
from ptedge.samples.scenes import DOMAINS
from ptedge.samples.shift import RECIPES, Shift, draw_effects, shift, write_shifted
from ptedge.samples.write import write_coco


def test_draw_effects__a_recipe_with_strengths_of_each() -> None:
    wanted = Shift(weakest=0.5, strongest=0.6, seed=3)
    drawn = [draw_effects(wanted, index) for index in range(60)]
    assert {tuple(name for name, _ in effects) for effects in drawn} == set(RECIPES)
    assert all(0.5 <= strength <= 0.6 for effects in drawn for _, strength in effects)
    assert draw_effects(wanted, 7) == drawn[7]


def test_shift__labels_stay_and_strengths_are_on_record(tmp_path: Path) -> None:
    clear = write_coco(tmp_path / "clear", DOMAINS["clear"], count=3, seed=4)
    out = tmp_path / "made" / "val.json"
    given = [str(tmp_path / "clear" / "annotations.json"), str(out), "--recipes", "fog,night+blur", "--seed", "2"]
    done = CliRunner().invoke(shift, given)
    assert done.exit_code == 0, done.output
    made = open_dataset(out)
    assert [sample.path for sample in made.samples] == [tmp_path / "made" / "val" / f"00000{i}.jpg" for i in range(3)]
    for sample, before in zip(made.samples, clear.samples, strict=True):
        assert np.array_equal(sample.boxes, before.boxes)
        assert np.array_equal(sample.ignore, before.ignore)
        assert not np.array_equal(read_image(sample.path), read_image(before.path))
    record = json.loads((tmp_path / "made" / "val.shift.json").read_text("utf-8"))
    expected = draw_effects(Shift((("fog",), ("night", "blur")), seed=2), 1)
    assert record["images"][1] == {
        "file": "000001.jpg",
        "effects": [{"kind": name, "strength": strength} for name, strength in expected],
    }


def test_write_shifted__two_pictures_of_one_name_are_refused(tmp_path: Path) -> None:
    one = write_coco(tmp_path / "a", DOMAINS["clear"], count=1, seed=0)
    both = one.__class__(tmp_path, "coco", one.class_names, one.samples * 2)
    with pytest.raises(InputError, match="two pictures"):
        write_shifted(both, tmp_path / "out.json", tmp_path / "out", Shift())


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--recipes", "snow"], "'snow' is no effect"), (["--weakest", "0.9", "--strongest", "0.5"], "is above")],
)
def test_shift__wrong_options_are_told(tmp_path: Path, options: list[str], said: str) -> None:
    done = CliRunner().invoke(shift, ["x.json", str(tmp_path / "y.json"), *options])
    assert done.exit_code == 2
    assert said in done.output
