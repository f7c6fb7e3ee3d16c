from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from servers.mjpeg_server import MjpegServer
from tiny_model import tiny_bundle, tiny_onnx

from ptedge.cli import cli
from ptedge.errors import InputError
from ptedge.runtime import run as run_module


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "car.bundle", tiny_onnx(batch=2), batch=2).path


@pytest.fixture
def videos(tmp_path: Path) -> list[Path]:
    paths = []
    for name, count in (("yard", 12), ("gate", 5)):
        paths.append(tmp_path / f"{name}.mp4")
        writer = cv2.VideoWriter(str(paths[-1]), cv2.VideoWriter.fourcc(*"mp4v"), 50.0, (96, 64))
        for i in range(count):
            writer.write(np.full((64, 96, 3), i * 20, np.uint8))
        writer.release()
    return paths


def ptedge(*arguments: object, check: bool = True) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if check and result.exit_code:
        raise result.exception or AssertionError(result.output)
    return result


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "detections.jsonl").read_text("utf-8").splitlines()]


def test_run__several_sources(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = json.loads(ptedge("run", bundle, *videos, "--out", out, "--json").stdout)
    assert [(about["name"], about["frames"]) for about in report["sources"]] == [("yard", 12), ("gate", 5)]
    files = ["detections.jsonl", "run.json", "video-gate.mp4", "video-yard.mp4"]
    assert sorted(p.name for p in out.iterdir()) == files
    assert sorted([*(Path(path).name for path in report["outputs"]), "run.json"]) == files
    for name, count in (("yard", 12), ("gate", 5)):
        assert [line["frame"] for line in lines(out) if line["source"] == name] == list(range(count))


def test_run__one_source_is_written_as_ever(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    ptedge("run", bundle, videos[0], "--out", tmp_path / "out")
    assert list(lines(tmp_path / "out")[0]) == ["frame", "time", "file", "width", "height", "detections"]


@pytest.mark.parametrize(("strict", "status"), [((), 0), (("--strict",), 1)])
def test_run__a_source_that_fails(
    bundle: Path, videos: list[Path], tmp_path: Path, strict: tuple[str, ...], status: int
) -> None:
    command = ("run", bundle, videos[0], tmp_path / "nowhere.mp4", "--out", tmp_path / "out", *strict)
    result = ptedge(*command, check=False)
    assert result.exit_code == status and len(lines(tmp_path / "out")) == 12
    assert "failed: " in result.stderr and "nowhere.mp4" in result.stderr


def test_run__all_sources_fail(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the 2 sources can be opened"):
        ptedge("run", bundle, tmp_path / "a.mp4", tmp_path / "b.mp4")
    with pytest.raises(InputError, match="Put a pattern in quotes"):
        ptedge("run", bundle, *[tmp_path / f"{i}.jpg" for i in range(33)])


def test_run__start_stride_and_rate(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    ptedge("run", bundle, videos[0], "--out", tmp_path / "out", "--start", 1, "--stride", 4)
    assert [line["frame"] for line in lines(tmp_path / "out")] == [1, 5, 9]
    capture = cv2.VideoCapture(str(tmp_path / "out" / "video.mp4"))
    assert (capture.get(cv2.CAP_PROP_FRAME_COUNT), capture.get(cv2.CAP_PROP_FPS)) == (3, 12.5)
    capture.release()
    ptedge("run", bundle, videos[0], "--out", tmp_path / "out", "--rate", 10, "--loop", "--limit", 5, "--save", "jsonl")
    assert len(lines(tmp_path / "out")) == 5


def test_run__images_with_a_rate_can_play_in_realtime(bundle: Path, tmp_path: Path) -> None:
    for i in range(3):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.zeros((64, 96, 3), np.uint8))
    ptedge("run", bundle, str(tmp_path / "*.png"), "--out", tmp_path / "out", "--realtime", "--rate", 50)
    assert all(line["age_ms"] >= 0 for line in lines(tmp_path / "out"))


def test_run__serves_while_it_runs(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is asked from inside the run, by a sink that stands for a visitor."""
    seen: list[dict[str, Any]] = []
    original = run_module.LiveView.write

    def write(self: Any, result: Any) -> None:
        original(self, result)
        if len(seen) == 0 and result.frame.index == 3:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            address = servers[0].address
            with opener.open(f"{address}status.json", timeout=20) as answer:
                seen.append(json.loads(answer.read()))
            with opener.open(f"{address}frame.jpg", timeout=20) as answer:
                assert answer.read().startswith(b"\xff\xd8")

    servers: list[Any] = []
    server_class = run_module.LiveServer
    monkeypatch.setattr(run_module.LiveView, "write", write)
    monkeypatch.setattr(run_module, "LiveServer", lambda *a: servers.append(server_class(*a)) or servers[-1])
    result = ptedge("run", bundle, videos[0], "--out", tmp_path / "out", "--serve", 0, "--collect", tmp_path / "field")
    assert "live view at http://127.0.0.1:" in result.stderr
    assert seen[0]["frames"] == 3 and seen[0]["collected"]["counters"]["seen"] == 4
    assert seen[0]["model"]["classes"] == ["car", "person"]


def test_run__serve_needs_a_token_for_others(bundle: Path, videos: list[Path]) -> None:
    with pytest.raises(InputError, match="needs a token"):
        ptedge("run", bundle, videos[0], "--serve", "0.0.0.0:8080")


def test_run__push_that_nobody_takes_does_not_disturb(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 0.2)
    command = ("run", bundle, videos[0], "--out", tmp_path / "out", "--push", "http://me:secret@127.0.0.1:9/", "--json")
    result = ptedge(*command)
    push = json.loads(result.stdout)["push"]
    assert (push["sent"], push["dropped"], push["to"]) == (0, 12, "http://***@127.0.0.1:9/")
    assert len(lines(tmp_path / "out")) == 12 and "secret" not in result.stdout + result.stderr


class Camera(BaseHTTPRequestHandler):
    """Motion JPEG, 50 frames a second; hangs up after 20 frames, and answers again when asked again."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=x")
        self.end_headers()
        jpeg = cv2.imencode(".jpg", np.full((64, 96, 3), 90, np.uint8))[1].tobytes()
        with contextlib.suppress(OSError):
            for _ in range(20):
                head = f"--x\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                self.wfile.write(head.encode() + jpeg + b"\r\n")
                time.sleep(0.02)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def camera() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Camera)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://me:secret@127.0.0.1:{server.server_address[1]}/yard"
    server.shutdown()
    thread.join()
    server.server_close()


def test_run__a_camera_that_hangs_up_is_asked_again(bundle: Path, camera: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = ptedge("run", bundle, camera, "--out", out, "--limit", 30, "--json")
    (about,) = json.loads(result.stdout)["sources"]
    assert about["kind"] == "live" and about["live"]["reconnects"] >= 1
    assert about["frames"] + about["dropped"] >= 30 and "secret" not in result.stdout + result.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "detections.jsonl",
        "run.json",
    ]  # pictures only when asked for
    assert all(line["age_ms"] >= 0 for line in lines(out))


def test_run__a_camera_and_a_video(bundle: Path, camera: str, videos: list[Path], tmp_path: Path) -> None:
    command = ("run", bundle, camera, videos[0], "--out", tmp_path / "out", "--limit", 8, "--lossless", "--json")
    report = json.loads(ptedge(*command).stdout)
    assert [about["frames"] for about in report["sources"]] == [8, 8] and report["dropped"] == 0


def test_run__login_from_a_file(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "logins").write_text("machine 127.0.0.1 login camera password Ge#heim")
    with MjpegServer(login=("camera", "Ge#heim")) as camera:
        done = ptedge("run", bundle, camera.url, "--source-auth", tmp_path / "logins", "--limit", 2, "--out", tmp_path)
        assert "heim" not in done.output
    assert len(lines(tmp_path)) >= 1


def test_run__twelve_bits_in_sixteen_are_told(bundle: Path, tmp_path: Path) -> None:
    assert cv2.imwrite(str(tmp_path / "a.png"), np.full((48, 64), 4095, np.uint16))
    done = ptedge("run", bundle, tmp_path / "a.png", "--out", tmp_path / "out", "--save", "jsonl")
    assert "1 images of 16 bits use only the lowest 12" in done.output
