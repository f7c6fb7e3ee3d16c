from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from made_artifacts import write_checkpoint

from ptedge.commands.inspect import describe


def test_describe__run_folder(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model.pt")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "loss": 0.5}\n{"st')  # cut by a power loss
    (tmp_path / "summary.json").write_text('{"steps": 2}')
    got = describe(tmp_path)
    assert got["kind"] == "run folder"
    assert (got["logged_steps"], got["last_logged"]) == (2, {"step": 2, "loss": 0.5})
    assert got["summary"] == {"steps": 2}
    assert got["model"]["kind"] == "checkpoint"


def test_describe__field_folder(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").write_bytes(b"12345")
    (tmp_path / "field.json").write_text('{"schema": 1, "policy": {"random": 0.1}}')
    lines: list[dict[str, Any]] = [
        {"file": "images/a.jpg", "time": 1.0, "model": "ab", "camera": "0", "why": ["random"]},
        {"file": "images/b.jpg", "time": 9.0, "model": "ab", "camera": "0", "why": ["random", "entropy"]},
    ]
    (tmp_path / "frames.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    got = describe(tmp_path)
    assert (got["kind"], got["frames"], got["images"], got["image_bytes"]) == ("field folder", 2, 1, 5)
    assert (got["first_time"], got["last_time"]) == (1.0, 9.0)
    assert got["models"] == {"ab": 2}
    assert got["kept_for"] == {"random": 2, "entropy": 1}
    assert got["cameras"] == {"0": 2}
    assert got["field"]["policy"] == {"random": 0.1}
