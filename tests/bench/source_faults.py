"""Faults of live sources, made on purpose: what happened, frames lost, time to recover, as a table.

    .venv/bin/python tests/bench/source_faults.py [--out table.md]

Cameras are servers on 127.0.0.1: MJPEG (``tests/servers/mjpeg_server.py``) and, where GStreamer's RTSP server is
installed, RTSP. Sources run with the default options. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers.mjpeg_server import MjpegServer
from servers.rtsp_camera import Proxy, RtspCamera, rtsp_absent

from ptedge.frames.source import FrameSource, LiveOptions, open_frames

RESTARTS = 10
DOWN = 2.0  # seconds
FPS = 25
PATIENCE = 40.0

Camera = MjpegServer | RtspCamera


class Watch:
    """Takes all frames of a source on a thread.

    Attributes:
        source: what is watched.
        arrived: ``time.monotonic()`` of each frame.
        error: what ended it, if anything did.
    """

    def __init__(self, source: FrameSource) -> None:
        self.source, self.arrived, self.error = source, [0.0], ""
        threading.Thread(target=self._take, daemon=True).start()
        self.next_frame()

    def next_frame(self) -> float:
        """Seconds until the next frame from now."""
        began = time.monotonic()
        while self.arrived[-1] < began:
            if time.monotonic() - began > PATIENCE:
                raise SystemExit(f"no frame for {PATIENCE} s: {self.source.status}")
            time.sleep(0.002)
        return self.arrived[-1] - began

    def reconnected(self, count: int) -> float:
        """Seconds from now until the first frame after so many reconnections."""
        began = time.monotonic()
        while self.source.status.reconnects < count and time.monotonic() - began < PATIENCE:
            time.sleep(0.002)
        return time.monotonic() - began + self.next_frame()

    def _take(self) -> None:
        try:
            for frame in self.source:
                self.arrived.append(frame.arrived or 0.0)
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def watched(url: str, options: LiveOptions) -> Iterator[Watch]:
    """A source with a watch on it."""
    with open_frames(url, live=options) as source:
        yield Watch(source)


def row(name: str, watch: Watch, what: str, recovery: list[float]) -> str:
    """A line of the table."""
    status = watch.source.status
    lost = round(status.outage * FPS) + status.corrupt
    counted = [
        f"{count} {word}" + ("s" if count > 1 and word != "corrupt" else "")
        for count, word in (
            (status.reconnects, "reconnection"),
            (status.stalls, "stall"),
            (status.resizes, "size change"),
            (status.corrupt, "corrupt"),
        )
        if count
    ]
    seconds = ""
    if recovery:
        seconds = f"{statistics.median(recovery):.2f} s"
        seconds += f" (worst of {len(recovery)}: {max(recovery):.2f} s)" if len(recovery) > 1 else ""
    line = f"| {name} | {what} | {', '.join(counted)} | {lost} | {seconds} |"
    print(line, file=sys.stderr, flush=True)
    assert not watch.error, watch.error
    return line


def killed(kind: str, camera: Camera, stop: Callable[[], None], options: LiveOptions) -> str:
    """Power cuts, each time with another frame size afterwards."""
    sizes = [(320, 240), (640, 360), (160, 128)]
    with watched(camera.url, options) as watch:
        recovery = []
        for n in range(1, RESTARTS + 1):
            stop()
            time.sleep(DOWN)
            camera.size = sizes[n % 3]
            camera.start()
            recovery.append(watch.reconnected(n))
        what = f"down for {DOWN:g} s, {RESTARTS} times, back with another frame size: the run goes on in the new size"
        return row(f"{kind}: server killed and restarted", watch, what, recovery)


def mjpeg_faults(options: LiveOptions) -> Iterator[str]:
    """All faults of an MJPEG camera."""
    every = 1 / FPS
    with MjpegServer(every=every, size=(320, 240)) as camera:
        yield killed("MJPEG", camera, camera.stop, options)
    with MjpegServer(every=every) as camera, watched(camera.url, options) as watch:
        camera.stalled = True
        time.sleep(options.stall + 3)
        camera.stalled = False
        recovery = [watch.next_frame()]
        yield row(
            "MJPEG: connection open, nothing sent", watch, "noticed after the stall time, connected anew", recovery
        )
    with MjpegServer(every=every) as camera, watched(camera.url, options) as watch:
        camera.trickle = 0.05
        time.sleep(options.stall + 3)
        camera.trickle = 0.0
        recovery = [watch.next_frame()]
        yield row(
            "MJPEG: a byte now and then, no picture", watch, "noticed after the stall time, connected anew", recovery
        )
    with MjpegServer(every=2.0) as camera, watched(camera.url, options) as watch:
        time.sleep(8)
        yield row("MJPEG: slow, a picture every 2 s", watch, "goes on", [])
    with MjpegServer(every=every, corrupt=5) as camera, watched(camera.url, options) as watch:
        time.sleep(4)
        sent = watch.source.status.frames
        yield row("MJPEG: every fifth picture cut in half", watch, f"left out and counted, {sent} frames in all", [])
    with MjpegServer(every=every, garbage=5) as camera, watched(camera.url, options) as watch:
        time.sleep(4)
        yield row("MJPEG: bytes without meaning between pictures", watch, "passed over, same connection", [])


def rtsp_faults(options: LiveOptions) -> Iterator[str]:
    """All faults of an RTSP camera."""
    with RtspCamera(fps=FPS) as camera:
        yield killed("RTSP", camera, camera.kill, options)
    with RtspCamera(fps=FPS) as camera, watched(camera.url, options) as watch:
        time.sleep(2)
        camera.freeze()
        time.sleep(options.stall + 3)
        camera.thaw()
        recovery = [watch.next_frame()]
        yield row("RTSP: server frozen", watch, "noticed after the stall time, connected anew", recovery)
    with RtspCamera(fps=2) as camera, watched(camera.url, options) as watch:
        time.sleep(5)
        yield row("RTSP: slow, 2 frames a second", watch, "goes on", [])
    with RtspCamera(fps=FPS) as camera, Proxy(camera.port) as proxy:
        with watched(f"rtsp://127.0.0.1:{proxy.port}/stream", options) as watch:
            time.sleep(2)
            before = len(watch.arrived)
            proxy.damage = 0.3
            time.sleep(5)
            proxy.damage = 0.0
            share = (len(watch.arrived) - before) / (5 * FPS)
            recovery = [watch.next_frame()]
            what = (
                f"{min(share, 1):.0%} of the frames came, then a stall, noticed; FFmpeg does not tell what is damaged"
            )
            yield row("RTSP: a byte changed in 30 % of the packets for 5 s", watch, what, recovery)
        with watched(f"rtsp://127.0.0.1:{proxy.port}/stream", options) as watch:
            recovery = []
            for n in range(1, 4):
                time.sleep(2)
                proxy.cut()
                recovery.append(watch.reconnected(n))
            yield row("RTSP: connection cut three times", watch, "connected anew", recovery)


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="Write the table into a file as well.")
    arguments = parser.parse_args()
    options = LiveOptions()
    table = ["| fault | what happened | counted | frames lost | back to first frame |", "|---|---|---|---|---|"]
    table += mjpeg_faults(options)
    absent = rtsp_absent()
    table += [] if absent else rtsp_faults(options)
    print("\n".join(table))
    if absent:
        print(absent, file=sys.stderr)
    if arguments.out is not None:
        arguments.out.write_text("\n".join(table) + "\n", "utf-8")
    time.sleep(1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"threads at the end: {threading.active_count()}, memory at most: {memory:.0f} MiB", file=sys.stderr)


if __name__ == "__main__":
    main()
