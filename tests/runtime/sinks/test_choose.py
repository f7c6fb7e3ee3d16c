from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from made_results import NAMES, result, video_frames

from ptedge.frames.source import FrameSource
from ptedge.runtime.counters import RunSource
from ptedge.runtime.sinks.choose import open_sinks, written


def test_sinks__several_sources_are_told_apart(tmp_path: Path) -> None:
    sources = [RunSource("yard", "yard.mp4", "video", FrameSource("yard.mp4", "video", None, 10.0))]
    sources.append(RunSource("gate", "gate.mp4", "video", FrameSource("gate.mp4", "video", None, 20.0)))
    sinks = open_sinks(("jsonl", "csv", "coco", "video", "images"), tmp_path, sources, NAMES)
    for i, name in enumerate(("yard", "gate", "yard")):
        for sink in sinks:
            sink.write(dataclasses.replace(result(i), source=name))
    for sink in sinks:
        sink.close()
    lines = [json.loads(line) for line in (tmp_path / "detections.jsonl").read_text("utf-8").splitlines()]
    assert [line["source"] for line in lines] == ["yard", "gate", "yard"]
    assert (tmp_path / "detections.csv").read_text("utf-8").splitlines()[1].startswith("yard,0,")
    names = [image["file_name"] for image in json.loads((tmp_path / "coco.json").read_text("utf-8"))["images"]]
    assert names == ["yard/000000.jpg", "gate/000001.jpg", "yard/000002.jpg"]
    assert video_frames(tmp_path / "video-yard.mp4") == 2 and video_frames(tmp_path / "video-gate.mp4") == 1
    assert sorted(p.name for p in (tmp_path / "images" / "yard").iterdir()) == ["000000.jpg", "000002.jpg"]
    assert len(written(sinks)) == 6
