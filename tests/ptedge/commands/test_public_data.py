"""``ptedge data fetch-help``, ``fog``, and ``check`` on the folder of a public data set."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from labelled_files import image, text

from ptedge.commands.data import data
from ptedge.commands.public_data import NAMES
from ptedge.data.public import ALL_GUIDES


def test_names__are_those_of_the_guides() -> None:
    assert sorted(ALL_GUIDES) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_fetch_help__the_description_it_tells_to_write_is_one(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(data, ["fetch-help", name, "--root", str(tmp_path)])
    assert done.exit_code == 0 and ALL_GUIDES[name].page in done.stdout
    lines = done.stdout.partition(f"Write {name}.toml:")[2].partition("Then:")[0].splitlines()
    description = text(tmp_path / "d.toml", "".join(f"{line.strip()}\n" for line in lines))
    (tmp_path / "VOC2012").mkdir()
    checked = CliRunner().invoke(data, ["check", str(description)])
    assert checked.exit_code == 1 and type(checked.exception).__name__ == "InputError"  # no data, but no wrong key


def test_check__tells_what_a_folder_of_cityscapes_lacks(tmp_path: Path) -> None:
    text(tmp_path / "gtFine" / "val" / "ulm" / "ulm_1_gtFine_polygons.json", "{}")
    done = CliRunner().invoke(data, ["check", str(tmp_path)])
    assert done.exit_code == 1
    assert f"missing  {tmp_path}/leftImg8bit/val/*/*_leftImg8bit.png: nothing there. Unpack leftImg8bit" in done.stdout
    assert "polygons.json: 1 files, the official set has 500" in done.stdout and "3 parts missing" in done.stdout
    document = json.loads(CliRunner().invoke(data, ["check", str(tmp_path), "--json"]).stdout)
    assert len(document["missing"]) == 3 and document["ok"] is False
    kitti = CliRunner().invoke(data, ["check", str(tmp_path), "--layout", "kitti"])
    assert kitti.exit_code == 1 and "Unpack data_object_image_2.zip into" in kitti.stdout


def test_fog__with_depths(tmp_path: Path) -> None:
    image(tmp_path / "in" / "a.png")
    (tmp_path / "depth").mkdir()
    assert cv2.imwrite(str(tmp_path / "depth" / "a.png"), np.full((80, 100), 50_000, np.uint16))
    words = ["fog", str(tmp_path / "in"), "--depth", str(tmp_path / "depth")]
    assert CliRunner().invoke(data, words).exit_code == 2
    done = CliRunner().invoke(data, [*words, "--out", str(tmp_path / "out"), "--light", "200", "200", "200"])
    assert done.exit_code == 0, done.output
    assert "beta 0.02: contrast falls to 5 % at 150 m" in done.stderr and "1 images written" in done.stderr
    foggy = cv2.imread(str(tmp_path / "out" / "a_foggy_beta_0.02.png"))
    assert foggy[0, 0].tolist() == [126] * 3  # 200 (1 - e^-1), 50 m at 0.001 m a step
