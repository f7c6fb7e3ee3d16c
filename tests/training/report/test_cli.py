"""``ptedge report`` on a run of the tiny detector."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_field import collect
from made_run import write_run
from tiny_model import tiny_bundle
from training_shell import Shell

from ptedge.errors import InputError
from ptedge.training.report.cli import report


@pytest.fixture
def run(ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path) -> Path:
    status, err = ptedge.adapt(pretrained, tmp_path / "run", "--target", target_frames, "--source-free")
    assert status == 0, err
    return tmp_path / "run"


def written(*words: Path | str) -> str:
    done = CliRunner().invoke(report, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return Path(done.stdout.strip()).read_text("utf-8")


def test_report__of_a_run_finds_its_start_and_its_frames(run: Path, pretrained: Path, source_data: Path) -> None:
    assert json.loads((run / "summary.json").read_text())["checkpoint"] == str(pretrained)
    page = written(run, "--val", source_data)
    assert (run / "report.html").is_file()
    assert "source model" in page and "adapted model" in page and page.count("data:image/jpeg") >= 2 * 5
    assert "5 frames spread evenly" in page
    assert "on 6 labelled frames" in page
    assert str(pretrained) in page


def test_report__says_where_the_start_is_only_what_the_run_kept(run: Path, pretrained: Path, tmp_path: Path) -> None:
    pretrained.unlink()
    page = written(run, "--out", tmp_path / "out.html")
    assert "not where the run found it" in page and "--before CHECKPOINT" in page
    shutil.rmtree(run / "checkpoints")
    assert "nothing shows before" in written(run, "--out", tmp_path / "out.html")


def test_report__json_tells_what_was_found_and_what_is_missing(tmp_path: Path) -> None:
    done = CliRunner().invoke(report, [str(write_run(tmp_path / "run")), "--json"], catch_exceptions=False)
    told = json.loads(done.stdout)
    assert set(told) == {"page", "bytes", "models", "frames", "scores", "missing"}
    assert told["bytes"] == Path(told["page"]).stat().st_size and told["frames"] == 0
    assert all(set(entry) == {"why", "command"} for entry in told["missing"])


def test_report__without_models_and_frames_still_has_the_curves(tmp_path: Path) -> None:
    page = written(write_run(tmp_path / "run"))
    assert "Total loss" in page and "model.pt is not there" in page


def test_report__without_torch_a_bundle_and_a_field_folder_show_before_and_after(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "model.pt").write_bytes(b"of no use here")
    bundle = tiny_bundle(tmp_path / "bundle")
    classes = list(bundle.manifest.class_names)
    (run / "summary.json").write_text(json.dumps({"command": "adapt", "classes": classes}))
    collect(tmp_path / "field", count=3)
    about = json.loads((tmp_path / "field" / "field.json").read_text())
    (tmp_path / "field" / "field.json").write_text(json.dumps({**about, "class_names": classes}))
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torchvision", "timm", "matplotlib", "tensorboard"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["ptedge", "report", {str(run)!r}, {str(tmp_path / "field")!r}, {str(bundle.path)!r}]
from ptedge.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    page = (run / "report.html").read_text()
    assert "collected by hash" in page and "adapted model" in page and page.count("data:image/jpeg") >= 2 * 3


def test_report__no_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no run"):
        CliRunner().invoke(report, [str(tmp_path)], catch_exceptions=False)
