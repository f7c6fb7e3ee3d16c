from __future__ import annotations

import contextlib
import json
import os
import shutil
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
from ptedge.errors import InputError, OutputError
from ptedge.folders import hold_folder
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


class Taker(BaseHTTPRequestHandler):
    """Takes pushed lines; refuses them with 401 unless the login is right."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        good = self.headers["Authorization"] in ("Basic bWU6c2VjcmV0", "Bearer the-token")  # me:secret
        self.send_response(204 if good else 401, "" if good else "secret")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.parametrize("way", ["variable", "file", "token file", "nothing"])
def test_run__push_login_from_the_environment_or_a_file(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (tmp_path / "logins").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / "token").write_text("the-token\n")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if way == "variable":
        monkeypatch.setenv("PTEDGE_PUSH_AUTH", "me:secret")
    elif way == "file":
        monkeypatch.setenv("PTEDGE_PUSH_AUTH_FILE", str(tmp_path / "logins"))
    elif way == "token file":
        monkeypatch.setenv("PTEDGE_PUSH_TOKEN_FILE", str(tmp_path / "token"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setattr("ptedge.runtime.sinks.push.CLOSING", 1.0 if way == "nothing" else 20.0)
    to = f"http://127.0.0.1:{server.server_address[1]}/"
    result = ptedge("run", bundle, videos[0], "--out", tmp_path / "out", "--push", to, "--json")
    server.shutdown()
    server.server_close()
    push = json.loads(result.stdout)["push"]
    if way == "nothing":
        assert push["sent"] == 0 and push["refused"] + push["dropped"] == 12
        assert result.stderr.count("the server answers 401 secret. Look at the login or token; not sent again") == 1
        assert f"; {push['refused']} refused, the server answers 401" in result.stderr
    else:
        assert push["sent"] == 12 and "secret" not in result.stdout + result.stderr


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


def names(out: Path) -> list[str]:
    return sorted(p.name for p in out.iterdir())


def test_run__a_restart_never_erases_results(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ptedge("run", bundle, videos[0], "--out", out, "--save", "jsonl,csv,coco,images")
    result = ptedge("run", bundle, videos[1], "--out", out, "--save", "jsonl")
    assert f"{out} held an earlier run's results; they are in {out}/earlier-1 now" in result.stderr
    assert names(out) == ["detections.jsonl", "earlier-1", "run.json"] and len(lines(out)) == 5
    assert len(lines(out / "earlier-1")) == 12 and len(names(out / "earlier-1" / "images")) == 12


def test_run__append_goes_on(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    command = ("run", bundle, videos[1], "--out", tmp_path / "out", "--append", "--save", "jsonl,csv,coco,images,video")
    ptedge(*command)
    with open(tmp_path / "out" / "detections.jsonl", "a") as file:
        file.write('{"frame": 5, "ti')  # killed here
    ptedge(*command)
    assert [line["frame"] for line in lines(tmp_path / "out")] == [0, 1, 2, 3, 4] * 2
    assert names(tmp_path / "out") == [
        *("coco-2.json", "coco.json", "detections.csv", "detections.jsonl"),
        *("images", "images-2", "run.json", "video-2.mp4", "video.mp4"),
    ]
    assert (tmp_path / "out" / "detections.csv").read_text().count("sigma_x1") == 1
    with pytest.raises(InputError, match="--append goes on in a folder that you name"):
        ptedge("run", bundle, videos[1], "--append")


def test_run__a_folder_of_its_own(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        ptedge("run", bundle, videos[1], "--save", "jsonl")
    assert ptedge("run", tmp_path / "no.bundle", videos[1], check=False).exit_code == 1
    assert names(tmp_path / "runs") == ["detect", "detect-2"]  # what came to nothing left nothing
    assert len(lines(tmp_path / "runs" / "detect")) == len(lines(tmp_path / "runs" / "detect-2")) == 5


def test_run__save_none_writes_nothing(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(tmp_path)
    monkeypatch.chdir(tmp_path)
    report = json.loads(ptedge("run", bundle, videos[1], "--save", "none", "--out", "out", "--json").stdout)
    assert report["frames"] == 5 and report["outputs"] == [] and names(tmp_path) == before


@pytest.mark.parametrize("where", ["--out", "--collect"])
def test_run__one_run_a_folder(bundle: Path, videos: list[Path], tmp_path: Path, where: str) -> None:
    with hold_folder(tmp_path / "out", "ptedge run"), pytest.raises(OutputError, match="in use by ptedge run"):
        ptedge("run", bundle, videos[1], where, tmp_path / "out")
    with pytest.raises(OutputError, match="in use"):
        ptedge("run", bundle, videos[1], "--out", tmp_path / "both", "--collect", tmp_path / "both")
    ptedge("run", bundle, videos[1], where, tmp_path / "out")


def test_run__rotates_and_loses_no_line(bundle: Path, videos: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    ptedge("run", bundle, videos[0], "--out", out, "--save", "jsonl", "--rotate-bytes", "1k")
    parts = [out / f"detections.{i}.jsonl" for i in range(1, len(names(out)) - 1)] + [out / "detections.jsonl"]
    assert len(parts) > 2 and all(part.stat().st_size <= 1000 for part in parts)
    found = [json.loads(line)["frame"] for part in parts for line in part.read_text("utf-8").splitlines()]
    assert found == list(range(12))
    ptedge("run", bundle, videos[1], "--out", out, "--save", "jsonl")
    assert names(out) == ["detections.jsonl", "earlier-1", "run.json"]
    assert len(names(out / "earlier-1")) == len(parts) + 1


def test_run__the_folder_is_taken_away(
    bundle: Path, videos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not in that folder lacks nothing."""
    original = run_module.LiveView.write

    def write(self: Any, result: Any) -> None:
        original(self, result)
        if result.frame.index == 3:
            shutil.rmtree(tmp_path / "out")

    monkeypatch.setattr(run_module.LiveView, "write", write)
    command = ("run", bundle, videos[0], "--out", tmp_path / "out", "--save", "jsonl,csv,coco,video,images")
    collect = ("--collect", tmp_path / "field", "--collect-random", 1, "--collect-interval", 0, "--serve", 0)
    with pytest.raises(OutputError, match=r"detections\.jsonl was removed or replaced"):
        ptedge(*command, *collect)
    about = json.loads((tmp_path / "field" / "field.json").read_text("utf-8"))
    assert about["counters"]["seen"] == 5  # frames 0 to 4: that of the trouble too
    assert len(json.loads((tmp_path / "out" / "coco.json").read_text("utf-8"))["images"]) == 5


def test_run__names_that_are_no_utf8_and_very_long_ones(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    cv2.imwrite(str(folder / "a.png"), np.zeros((64, 96, 3), np.uint8))
    for name in (b"caf\xe9.png", ("b" * 240 + ".png").encode(), ("車" * 80 + ".png").encode()):
        (folder / os.fsdecode(name)).write_bytes((folder / "a.png").read_bytes())
    (folder / os.fsdecode(b"d\xe9.png")).write_bytes(b"no picture")
    options = ("--save", "jsonl,csv,coco,images", "--collect", tmp_path / "field", "--collect-random", 1)
    report = json.loads(ptedge("run", bundle, folder, "--out", tmp_path / "out", *options, "--json").stdout)
    assert [Path(about["file"]).name for about in report["skipped"]] == [r"d\xe9.png"]
    wanted = ["a.png", "b" * 240 + ".png", r"caf\xe9.png", "車" * 80 + ".png"]
    assert [Path(line["file"]).name for line in lines(tmp_path / "out")] == wanted
    coco = json.loads((tmp_path / "out" / "coco.json").read_text("utf-8"))
    assert [Path(image["file_name"]).name for image in coco["images"]] == wanted
    assert len(names(tmp_path / "out" / "images")) == 4 and report["left_out"] == {}
    assert ptedge("field", "summary", tmp_path / "field").exit_code == 0


def test_run__one_frame_too_large_for_jpeg(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, width in (("a", 96), ("b", 65_501), ("c", 96)):
        rising = np.linspace(0, 255 * (name == "b"), width).astype(np.uint8)  # b is unlike a, which is collected
        cv2.imwrite(str(folder / f"{name}.png"), np.tile(rising[None, :, None], (16, 1, 3)))
    options = ("--save", "jsonl,images,video", "--collect", tmp_path / "field", "--collect-random", 1)
    interval = ("--collect-interval", 0)
    result = ptedge("run", bundle, folder, "--out", tmp_path / "out", *options, *interval)
    assert "images lacks 1 frames that could not be written; the first: " in result.stderr
    assert "65501 x 16 pixels are too large for JPEG" in result.stderr
    assert len(lines(tmp_path / "out")) == 3
    assert names(tmp_path / "out" / "images") == ["000000_a.jpg", "000002_c.jpg"]
    about = json.loads((tmp_path / "field" / "field.json").read_text("utf-8"))["counters"]
    assert about["cannot be a JPEG"] == 1 and about["seen"] == 3
