"""Commands of the workshop that answer at once: what ``ptedge loop`` asks of drift, adapt, estimate, export, verify.

As a program: ``python tests/stand_in.py adapt ...`` for ``commands.adapt`` of a SITE.toml. An adaptation writes into
``ledger`` beside its round when it comes to its end, so a second one of the same round shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECONDS = 0.05  # of an adaptation, in two halves
AP50 = "STAND_IN_AP50"  # environment: of the adapted model, where it is to be told; the start's is 0.5
CHOSEN = "STAND_IN_CHOSEN"  # environment: step of the chosen model
VERIFIED = "STAND_IN_VERIFIED"  # environment: "no" fails
DRIFT = "STAND_IN_DRIFT"  # environment: what moved; empty for nothing


def answer(words: Sequence[str]) -> dict[str, Any]:
    """The document of a command."""
    known = {"drift": _drift, "adapt": _adapt, "estimate": _estimate, "export": _export, "verify": _verify}
    return known[words[0]](words)


def _after(words: Sequence[str], option: str) -> str:
    return words[words.index(option) + 1]


def _drift(words: Sequence[str]) -> dict[str, Any]:
    listed = Path(words[2])
    assert all((listed.parent / name).is_file() for name in listed.read_text().split())
    moved = [{"text": text} for text in os.environ.get(DRIFT, "").split(",") if text]
    return {"found": bool(moved), "moved": moved}


def _adapt(words: Sequence[str]) -> dict[str, Any]:
    """A model that depends on what it was made from; going on with a finished run does nothing."""
    run = Path(_after(words, "--out"))
    frames = Path(_after(words, "--target")) / "frames.jsonl"
    model = hashlib.sha256(Path(words[1]).read_bytes() + frames.read_bytes()).hexdigest()
    if not (run / "summary.json").exists():
        assert ("--resume" in words) == (run / "config.toml").exists()
        run.mkdir(exist_ok=True)
        (run / "config.toml").touch()
        time.sleep(SECONDS / 2)
        (run / "model.pt").write_text(model)
        time.sleep(SECONDS / 2)
        with open(run.parent / "ledger", "a", encoding="utf-8") as ledger:
            ledger.write(f"{model}\n")
        summary: dict[str, Any] = {"steps": 10, "guards": [], "chosen": {"step": int(os.environ.get(CHOSEN, "10"))}}
        if AP50 in os.environ:
            summary["estimate"] = {"ap50": float(os.environ[AP50]), "ap50_error": 0.03}
        temporary = run / "summary.tmp"
        temporary.write_text(json.dumps(summary))
        temporary.rename(run / "summary.json")
    return {"out": str(run), "steps": 10, "summary": json.loads((run / "summary.json").read_text())}


def _estimate(words: Sequence[str]) -> dict[str, Any]:
    return {"estimate": {"ap50": 0.5, "ap50_error": 0.04}}


def _export(words: Sequence[str]) -> dict[str, Any]:
    """A tiny bundle of its own for each model."""
    from tiny_model import ANSWER, HEIGHT, WIDTH, tiny_bundle, tiny_onnx

    from ptedge.artifacts.lineage import Lineage

    content = Path(words[1]).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    score = 0.7 + int(digest[:4], 16) / 65536 / 5
    lineage = Lineage("source_free", "teacher", checkpoint=digest, step=10)
    bundle = tiny_bundle(
        Path(_after(words, "--out")), tiny_onnx({**ANSWER, "scores": [score, 0.6]}), lineage=lineage, created=digest
    )
    return {"bundle": str(bundle.path), "input_size": [HEIGHT, WIDTH], "bytes": 1000}


def _verify(words: Sequence[str]) -> dict[str, Any]:
    passed = os.environ.get(VERIFIED) != "no"
    return {"passed": passed, "checks": [{"check": "all", "passed": passed, "judged": True, "detail": ""}]}


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1:])))
