"""What ``ptedge run`` leaves behind when a sink or a signal ends it: one table row a fault.

Run: python tests/bench/run_faults.py BUNDLE [--json FILE]
It makes its own video. A full disk is a small tmpfs (root only); elsewhere that row is left out, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

SAVE = "jsonl,csv,coco,video,images"
WAIT = 60.0  # seconds for a run to react


def make_video(path: Path, frames: int, size: tuple[int, int] = (640, 360)) -> None:
    """A moving pattern, 25 frames a second."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25.0, size)
    width, height = size
    base = np.random.default_rng(0).integers(0, 256, (-(-height // 16), -(-width // 16), 3), np.uint8)
    base = base.repeat(16, 0).repeat(16, 1)[:height, :width]
    for i in range(frames):
        writer.write(np.ascontiguousarray(np.roll(base, i * 3, axis=1)))
    writer.release()


def start(bundle: str, video: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """A run on that video for ever."""
    command = [sys.executable, "-m", "ptedge", "run", bundle, str(video), "--loop", "--out", str(out), "--save", SAVE]
    command += ["--backend", "cpu", "--threads", "1", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Until it is true or the run has ended."""
    end = time.monotonic() + WAIT
    while process.poll() is None and not condition():
        if time.monotonic() > end:
            raise SystemExit("the run does not get going")
        time.sleep(0.05)


def lines_of(out: Path) -> int:
    path = out / "detections.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def readable(out: Path) -> tuple[dict[str, str], int]:
    """For each file what can be read of it, and the frames in ``detections.jsonl``."""
    said, count = {}, 0
    for name in ("detections.jsonl", "detections.csv", "coco.json", "video.mp4"):
        path = out / name
        try:
            if name == "detections.jsonl":
                count = len([json.loads(line) for line in path.read_text("utf-8").splitlines()])
                said[name] = f"{count} lines"
            elif name == "detections.csv":
                said[name] = f"{len(path.read_text('utf-8').splitlines()) - 1} rows"
            elif name == "coco.json":
                said[name] = f"{len(json.loads(path.read_text('utf-8'))['images'])} images"
            else:
                capture, frames = cv2.VideoCapture(str(path)), 0
                while path.exists() and capture.grab():
                    frames += 1
                capture.release()
                said[name] = f"{frames} frames" if frames else "absent"
        except FileNotFoundError:
            said[name] = "absent"
        except ValueError as error:
            said[name] = f"BROKEN ({error})"
    pictures = [cv2.imread(str(path)) for path in sorted((out / "images").glob("*.jpg"))]
    said["images"] = f"{sum(p is not None for p in pictures)} of {len(pictures)}"
    return said, count


def outcome(process: subprocess.Popen[str], out: Path, fault: str, sent: float) -> dict[str, Any]:
    """Wait for the end of a run and look at what it left."""
    try:
        _, stderr = process.communicate(timeout=WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        _, stderr = process.communicate()
        fault += " (HANGS)"
    seconds = time.monotonic() - sent
    files, count = readable(out)
    done = re.search(r"(\d+) frames, \d+ detections", stderr)
    early = re.search(r"frames written, (\d+) detected but not written", stderr)
    last = [line for line in stderr.splitlines() if line.strip()][-1:] or [""]
    return {
        "fault": fault,
        "status": process.returncode,
        "seconds": round(seconds, 2),
        "said": last[0][:160] if not done else re.search(r".*\d+ frames, \d+ detections", stderr).group(0),  # type: ignore[union-attr]
        "lost": int(done.group(1)) - count if done else int(early.group(1)) if early else None,
        "files": files,
        "traceback": "Traceback" in stderr,
        "left": sorted(path.name for path in out.glob(".*")),
    }


def with_signals(bundle: str, video: Path, out: Path, fault: str, *signals: signal.Signals) -> dict[str, Any]:
    """Send signals to a run in the middle."""
    process = start(bundle, video, out)
    wait_for(process, lambda: lines_of(out) > 30)
    sent = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.15 if len(signals) > 1 else 0.0)  # the same signal twice at once arrives once
    return outcome(process, out, fault, sent)


def with_full_disk(bundle: str, video: Path, folder: Path, size: str, *more: str) -> dict[str, Any]:
    """Write to a small disk."""
    disk = folder / f"disk{size}"
    disk.mkdir()
    fault = f"disk full ({size}{'B, ' + more[-1] if more else 'B'})"
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mount.returncode:
        return {"fault": fault, "skipped": "no right to mount a small disk"}
    try:
        out = disk / "out"
        process = start(bundle, video, out, *more)
        return outcome(process, out, fault, time.monotonic())
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def with_lost_folder(bundle: str, video: Path, out: Path) -> dict[str, Any]:
    """Remove the folder of images under a run: the next picture cannot be written."""
    process = start(bundle, video, out)
    wait_for(process, lambda: lines_of(out) > 30)
    shutil.rmtree(out / "images", ignore_errors=True)
    (out / "images").touch()
    sent = time.monotonic()
    return outcome(process, out, "a sink that cannot write any more", sent)


def with_dead_receiver(bundle: str, video: Path, out: Path) -> dict[str, Any]:
    """Push to where nobody listens."""
    process = start(bundle, video, out, "--limit", "60", "--push", "http://127.0.0.1:9/")
    return outcome(process, out, "push to a dead receiver, 60 frames", time.monotonic())


def row(found: dict[str, Any]) -> str:
    """A line of the table."""
    if "skipped" in found:
        return f"| {found['fault']} | not run: {found['skipped']} | | |"
    files = ", ".join(f"{name} {text}" for name, text in found["files"].items())
    happened = f"exit status {found['status']} after {found['seconds']:.1f} s: {found['said']}"
    happened += " TRACEBACK" if found["traceback"] else ""
    lost = "unknown" if found["lost"] is None else found["lost"]
    left = f"; remains: {', '.join(found['left'])}" if found["left"] else ""
    return f"| {found['fault']} | {happened} | {lost} | {files}{left} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--video", type=Path, help="use this one; one with objects in it fills the files sooner")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        video = options.video or folder / "video.mp4"
        if options.video is None:
            make_video(video, 100)
        int_, term = signal.SIGINT, signal.SIGTERM
        found = [
            with_signals(options.bundle, video, folder / "a", "Ctrl-C (SIGINT)", int_),
            with_signals(options.bundle, video, folder / "b", "SIGTERM", term),
            with_signals(options.bundle, video, folder / "c", "SIGTERM twice", term, term),
            with_signals(options.bundle, video, folder / "d", "SIGKILL", signal.SIGKILL),
            with_full_disk(options.bundle, video, folder, "24M"),
            with_full_disk(options.bundle, video, folder, "16K", "--save", "jsonl,csv"),
            with_lost_folder(options.bundle, video, folder / "e"),
            with_dead_receiver(options.bundle, video, folder / "f"),
        ]
    print("| fault | what happened | frames lost | readable after |\n|---|---|---|---|")
    print("\n".join(map(row, found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
