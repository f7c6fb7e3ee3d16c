from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from keys import key_pair
from tiny_model import tiny_bundle, tiny_manifest, tiny_onnx

from ptedge import preprocess
from ptedge.artifacts.bundle import write_bundle
from ptedge.artifacts.signature import read_signing_key
from ptedge.cli import cli
from ptedge.errors import ArtifactError, BackendError, ConfigError, InputError, OutputError


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "car.bundle").path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images and a corrupt one between them."""
    path = tmp_path / "frames"
    path.mkdir()
    for i in range(3):
        image = np.random.default_rng(i).integers(0, 256, (60, 90, 3), np.uint8)
        cv2.imwrite(str(path / f"{i}.png"), image)
    (path / "1b.png").write_bytes(b"not an image")
    return path


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "drive.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 50.0, (96, 64))
    for i in range(12):
        writer.write(np.full((64, 96, 3), i * 20, np.uint8))
    writer.release()
    return path


def ptedge(*arguments: object, check: bool = True) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if check and result.exit_code:
        raise result.exception or AssertionError(result.output)
    return result


def ptedge_json(*arguments: object) -> Any:
    return json.loads(ptedge(*arguments, "--json").stdout)


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "detections.jsonl").read_text("utf-8").splitlines()]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_run__images(bundle: Path, folder: Path, tmp_path: Path) -> None:
    result = ptedge("run", bundle, folder, "--out", tmp_path / "out", "--backend", "cpu", "--threads", 1)
    assert result.stdout == ""
    assert "1b.png" in result.stderr and "3 frames, 6 detections" in result.stderr and "1 skipped" in result.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["detections.jsonl", "images", "run.json"]
    assert [Path(line["file"]).name for line in lines(tmp_path / "out")] == ["0.png", "1.png", "2.png"]
    assert lines(tmp_path / "out")[0]["detections"][0]["box"] == [7.5, 15.0, 37.5, 45.0]  # scale 96/90


def test_run__video_with_everything(bundle: Path, video: Path, tmp_path: Path) -> None:
    out, field = tmp_path / "out", tmp_path / "field"
    report = ptedge_json(
        *("run", bundle, video, "--out", out, "--save", "jsonl,coco,csv,video,images", "--min-score", 0.7),
        *("--collect", field, "--collect-random", 1, "--collect-interval", 0),
    )
    assert report["frames"] == report["detections"] == len(lines(out)) == 12
    assert report["backend"] in ("cpu", "cuda") and not report["interrupted"] and report["skipped"] == []
    assert sorted(p.name for p in out.iterdir()) == [
        *("coco.json", "detections.csv", "detections.jsonl", "images", "run.json", "video.mp4")
    ]
    capture = cv2.VideoCapture(str(out / "video.mp4"))
    assert (capture.get(cv2.CAP_PROP_FRAME_COUNT), capture.get(cv2.CAP_PROP_FPS)) == (12, 50)
    capture.release()
    assert [line["time"] for line in lines(out)] == pytest.approx([i / 50 for i in range(12)], abs=1e-3)
    assert report["collected"]["images"] == 1  # grey frames look alike
    assert ptedge_json("field", "summary", field)["images"] == 1


def test_run__defaults_of_video_and_limit(bundle: Path, video: Path, tmp_path: Path) -> None:
    ptedge("run", bundle, video, "--out", tmp_path / "out", "--limit", 5)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["detections.jsonl", "run.json", "video.mp4"]
    assert len(lines(tmp_path / "out")) == 5


def test_run__realtime_plays_a_video_at_its_speed(bundle: Path, video: Path, tmp_path: Path) -> None:
    report = ptedge_json("run", bundle, video, "--out", tmp_path / "out", "--save", "jsonl", "--realtime")
    assert report["frames"] + report["dropped"] == 12
    assert lines(tmp_path / "out")[-1]["frame"] == 11


def test_run__realtime_needs_a_clock(bundle: Path, folder: Path) -> None:
    with pytest.raises(InputError, match="--realtime needs a video or a live source"):
        ptedge("run", bundle, folder, "--realtime")


def test_run__collect_alone_writes_nothing_else(
    bundle: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ptedge("run", bundle, folder, "--collect", "field", "--collect-random", 1, "--collect-interval", 0)
    assert not (tmp_path / "runs").exists()
    assert ptedge_json("field", "summary", "field")["images"] == 3


def test_run__policy_from_a_file_and_options_that_count_more(bundle: Path, folder: Path, tmp_path: Path) -> None:
    path, field = tmp_path / "policy.toml", tmp_path / "field"
    path.write_text(
        "triples = true\nseed = 5\n[shares]\nrandom = 0\nsigma = 0.3\n[quota]\nimages_day = 9\nimages = 4\n"
    )
    words = ["run", bundle, folder, "--collect", field, "--collect-policy", path]
    ptedge(*words, "--collect-random", 1, "--collect-quantile", 0.75, "--collect-bytes", "3MB", "--collect-interval", 0)
    policy = json.loads((field / "field.json").read_text())["policy"]
    assert (policy["triples"], policy["seed"], policy["threshold"]) == (True, 5, 0.3)
    assert {name: policy["shares"][name] for name in ("random", "entropy", "sigma", "missed")} == {
        **{"random": 1, "entropy": 0.25, "sigma": 0.25},
        "missed": 0.02,
    }
    assert policy["spacing"] == {"frames": 0, "seconds": 0.0, "duplicate_bits": 4}
    quota = policy["quota"]
    assert (quota["images"], quota["images_day"], quota["bytes"]) == (4, 9, 3_000_000)
    places = [json.loads(line)["place"] for line in (field / "frames.jsonl").read_text().splitlines()]
    assert places == [0, 1]  # the first of three frames, and the one after it
    with pytest.raises(ConfigError, match=r"unknown key 'random'; did you mean 'shares\.random'"):
        path.write_text("random = 0.1\n")
        ptedge(*words)


def test_run__bare_onnx_and_batch(folder: Path, tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b2", tiny_onnx(batch=2), batch=2)
    assert ptedge_json("run", bundle.model_path, folder, "--out", tmp_path / "out")["detections"] == 6


def test_run__source_then_output_then_model_are_checked_in_that_order(
    bundle: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="nowhere"):
        ptedge("run", "no.bundle", tmp_path / "nowhere", "--out", tmp_path / "file" / "out")
    with pytest.raises(OutputError, match="cannot write"):
        ptedge("run", "no.bundle", folder, "--out", tmp_path / "file" / "out")
    with pytest.raises(ArtifactError, match=r"no\.bundle"):
        ptedge("run", "no.bundle", folder, "--out", tmp_path / "out")
    with pytest.raises(BackendError, match="ptedge build"):
        ptedge("run", bundle, folder, "--out", tmp_path / "out", "--backend", "tensorrt")


def test_run__nothing_readable(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"x")
    with pytest.raises(InputError, match=r"bad\.jpg"):
        ptedge("run", bundle, tmp_path / "bad.jpg", "--out", tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [("--save", "jsonl,gif"), ("--save", ","), ("--collect-bytes", "much"), ("--limit", "0"), ("--min-score", "nan")],
)
def test_run__wrong_usage(bundle: Path, folder: Path, wrong: tuple[str, str]) -> None:
    assert ptedge("run", bundle, folder, *wrong, check=False).exit_code == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_run__signal_finishes_all_files(
    bundle: Path, folder: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    many, out = tmp_path / "many.txt", tmp_path / "out"
    many.write_text(f"{folder / '0.png'}\n" * 200_000)
    command = [
        sys.executable,
        "-m",
        "ptedge",
        "run",
        bundle,
        many,
        "--out",
        out,
        "--save",
        "jsonl,video,coco",
        "--json",
    ]
    with subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        jsonl = out / "detections.jsonl"
        wait_for(lambda: jsonl.exists() and jsonl.read_bytes().count(b"\n") > 5, process)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == status, stderr
    report = json.loads(stdout)
    assert report["interrupted"] and "Traceback" not in stderr
    assert report["frames"] == len(lines(out)) == len(json.loads((out / "coco.json").read_text())["images"])
    capture = cv2.VideoCapture(str(out / "video.mp4"))
    assert capture.get(cv2.CAP_PROP_FRAME_COUNT) == report["frames"]
    capture.release()
    assert not list(out.glob(".*"))


def test_run__kill_leaves_whole_lines(bundle: Path, folder: Path, tmp_path: Path) -> None:
    many, jsonl = tmp_path / "many.txt", tmp_path / "out" / "detections.jsonl"
    many.write_text(f"{folder / '0.png'}\n" * 200_000)
    command = [sys.executable, "-m", "ptedge", "run", bundle, many, "--out", jsonl.parent, "--save", "jsonl"]
    with subprocess.Popen([str(part) for part in command], stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: jsonl.exists() and jsonl.read_bytes().count(b"\n") > 5, process)
        process.kill()
    *whole, _ = jsonl.read_text("utf-8").split("\n")
    assert [json.loads(line)["frame"] for line in whole] == list(range(len(whole)))


@pytest.mark.parametrize("stage", ["_open_model", "open_sources"])
def test_run__signal_while_starting_ends_it(bundle: Path, folder: Path, tmp_path: Path, stage: str) -> None:
    """The model loads, or the first camera is being connected to: nothing is to be finished."""
    code = f"""
import sys, time
from ptedge.runtime import run
def wait(*_):
    print("waiting", flush=True)
    time.sleep(300)
run.{stage} = wait
from ptedge.cli import main
main()
"""
    words = [sys.executable, "-c", code, "run", str(bundle), str(folder), "--out", str(tmp_path / "out")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143 and stderr.splitlines()[-1] == "ptedge: ended by SIGTERM"
    assert not (tmp_path / "out" / "detections.jsonl").exists()


def test_run__shrinks_large_frames_quickly_where_asked(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []
    quick = preprocess.shrink_quickly

    def noted(image: Any, size: tuple[int, int]) -> Any:
        sizes.append(size)
        return quick(image, size)

    monkeypatch.setattr(preprocess, "shrink_quickly", noted)
    cv2.imwrite(str(tmp_path / "large.png"), np.zeros((300, 400, 3), np.uint8))
    options = ("--save", "none", "--backend", "cpu")
    ptedge("run", bundle, tmp_path / "large.png", *options)
    assert sizes == []
    ptedge("run", bundle, tmp_path / "large.png", *options, "--quick-shrink")
    assert sizes == [(85, 64)]  # 400 x 300 in 96 x 64


def test_run__trust(folder: Path, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    signed = write_bundle(tmp_path / "signed", tiny_manifest(), tiny_onnx(), read_signing_key(private)).path
    done = ptedge("run", signed, folder, "--out", tmp_path / "out", "--save", "jsonl", "--trust", public)
    assert "signature: signed by SHA256:" in done.stderr
    (signed / "bundle.sig").unlink()
    refused = ptedge("run", signed, folder, "--out", tmp_path / "none", "--trust", public, check=False)
    assert isinstance(refused.exception, ArtifactError) and "nobody vouches" in str(refused.exception)
    told = ptedge("run", signed, folder, "--out", tmp_path / "out2", "--save", "jsonl").stderr
    assert "signature: none: its hashes show that it is whole, not who made it" in told
