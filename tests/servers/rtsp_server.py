"""An RTSP camera for tests, made of GStreamer; run by the system's Python, which has the bindings.

Needs, on Debian and Ubuntu: python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good,
and gstreamer1.0-plugins-ugly for H.264 (otherwise JPEG is sent).

    /usr/bin/python3 rtsp_server.py --port 8554 --size 320x240 --fps 25

Prints ``ready <port> <codec>`` when it listens, at ``/stream``; with ``--login user:password`` it asks for them. Each
frame is of one grey that tells when it was made: 20 + 4 * (unix seconds * fps mod 50). Ends by itself after
``--seconds``.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", default="0")
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--fps", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--login", default="")
    arguments = parser.parse_args()
    try:
        import gi

        gi.require_version("Gst", "1.0")
        gi.require_version("GstRtspServer", "1.0")
        from gi.repository import GLib, Gst, GstRtspServer
    except (ImportError, ValueError) as error:
        print(f"absent: {error}", flush=True)
        return 3
    Gst.init(None)
    width, height = (int(part) for part in arguments.size.split("x"))
    h264 = Gst.ElementFactory.find("x264enc") is not None
    encoder = (
        f"x264enc tune=zerolatency speed-preset=ultrafast key-int-max={arguments.fps} bitrate=500 ! "
        "rtph264pay name=pay0 pt=96 config-interval=1"
        if h264
        else "jpegenc ! rtpjpegpay name=pay0 pt=26"
    )
    caps = f"video/x-raw,format=I420,width={width},height={height},framerate={arguments.fps}/1"

    class Factory(GstRtspServer.RTSPMediaFactory):  # type: ignore[misc]
        def do_create_element(self, url: Any) -> Any:
            bin_ = Gst.parse_launch(
                f"( appsrc name=source is-live=true do-timestamp=true format=time caps={caps} ! videoconvert ! "
                f"{encoder} )"
            )
            source = bin_.get_by_name("source")
            GLib.timeout_add(max(1, 1000 // arguments.fps), self.push, source)
            return bin_

        def push(self, source: Any) -> bool:
            number = int(time.time() * arguments.fps) % 50
            luma = round(16 + (20 + 4 * number) * 219 / 255)
            data = bytes([luma]) * (width * height) + bytes([128]) * (width * height // 2)
            return bool(source.emit("push-buffer", Gst.Buffer.new_wrapped(data)) in (Gst.FlowReturn.OK, -2))

    server = GstRtspServer.RTSPServer(service=arguments.port, address="127.0.0.1")
    factory = Factory()
    factory.set_shared(True)
    if arguments.login:
        auth = GstRtspServer.RTSPAuth()
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "user")
        user, password = arguments.login.split(":")
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
        server.set_auth(auth)
        permissions = GstRtspServer.RTSPPermissions()
        permissions.add_role("user")
        permissions.add_permission_for_role("user", "media.factory.access", True)
        permissions.add_permission_for_role("user", "media.factory.construct", True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory("/stream", factory)
    if not server.attach(None):
        print("absent: the port is in use", flush=True)
        return 3
    loop = GLib.MainLoop()
    GLib.timeout_add(int(arguments.seconds * 1000), loop.quit)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print(f"ready {server.get_bound_port()} {'h264' if h264 else 'jpeg'}", flush=True)
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
