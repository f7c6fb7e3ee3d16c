from __future__ import annotations

from ptedge.runtime.inputs import name_sources


def test_name_sources__short_and_unlike() -> None:
    specs = ["a/drive.mp4", "b/drive.mp4", "0", "rtsp://me:secret@10.0.0.1:554/ch 1", "x ! y ! z", "..."]
    names = name_sources(specs)
    assert names[:4] == ["drive", "drive-2", "camera0", "10.0.0.1_554_ch_1"]
    assert len(set(names)) == len(names) and all(name and "/" not in name for name in names)
