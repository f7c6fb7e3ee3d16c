"""``ptedge verify`` as on a device: neither torch nor onnx, a simulated engine beside ONNX Runtime on the CPU."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from fake_tensorrt import FakeDriver, graph_tensors, install
from tiny_model import ANSWER, HEIGHT, ROWS, WIDTH, tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.backends import trt_slot
from ptedge.cli import cli
from ptedge.errors import ArtifactError, BackendError, InputError, MissingExtraError

Rows = dict[str, list[Any]]
NOTHING: Rows = {name: [] for name in ANSWER}
EXTRAS = ("torch", "torchvision", "timm", "onnx")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle that finds a car and a person in every image; no engine, no checkpoint beside it."""
    return tiny_bundle(tmp_path / "device" / "bundle", tiny_onnx(sides=True)).path


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """A folder of two pictures."""
    (tmp_path / "frames").mkdir()
    for i in range(2):
        cv2.imwrite(str(tmp_path / "frames" / f"{i}.png"), np.full((32, 48, 3), 90 * i, np.uint8))
    return tmp_path / "frames"


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """No torch, no onnx, no CUDA; what other tests loaded of the checkpoint's side is forgotten for this one."""
    for name in [*EXTRAS, *(name for name in sys.modules if name.startswith("onnx."))]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "ptedge.export.verify.reference", raising=False)
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)


Engine = Callable[..., Path]


@pytest.fixture
def engine(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Gives the bundle an engine of a simulated device that answers every image with these rows."""

    def make(answer: Rows = ANSWER) -> Path:
        tensors = graph_tensors(1, (HEIGHT, WIDTH), ROWS)
        count = len(answer["scores"])

        def work(images: Any) -> dict[str, Any]:
            found = {name: np.zeros(shape) for name, (shape, _, is_input) in tensors.items() if not is_input}
            for name, rows in answer.items():
                if count:
                    found[name][0, :count] = rows
            return found | {"num_detections": count, "converged": 1}

        def no_graph(stream: int, work: Any) -> None:
            raise BackendError("no graph here")

        install(monkeypatch, FakeDriver(), tensors, work)
        monkeypatch.setattr(trt_slot, "CudaGraph", no_graph)
        digest, opened = hashlib.sha256(b"engine").hexdigest(), open_bundle(bundle)
        here = ("10.3.0", "12.6", "Orin", "8.7")
        record = EngineRecord("m.engine", digest, opened.model_hash, opened.manifest.precision, *here)
        (bundle / record.file).write_bytes(b"engine")
        add_record(bundle / "manifest.json", record)
        return bundle

    return make


def verify(bundle: Path, *arguments: object) -> Result:
    return CliRunner().invoke(cli, ["verify", str(bundle), *map(str, arguments)])


def lines_of(done: Result) -> dict[str, tuple[bool, bool, str]]:
    """Name of a check -> (passed, judged, detail), of ``--json``."""
    return {c["check"]: (c["passed"], c["judged"], c["detail"]) for c in json.loads(done.stdout)["checks"]}


def test_verify__an_engine_that_agrees(engine: Engine, frames: Path) -> None:
    done = verify(engine(), "--frames", frames, "--json")
    assert done.exit_code == 0, done.exception
    document, lines = json.loads(done.stdout), lines_of(done)
    assert document["passed"] is True and document["compared_nothing"] is None and document["against"] is None
    # two detections a side in each of 1 black, 2 noisy, 1 patterned image and 2 frames
    assert document["compared_detections"] == 2 * 2 * 6
    passed, judged, detail = lines["tensorrt m.engine against onnxruntime cpu, frames"]
    assert passed and judged and detail.startswith("2 images: 100.0% of 8 detections above 0.3 match")
    assert lines["graph"] == (
        *(True, False),
        'not checked: it takes onnx, which is not installed (pip install "ptedge[export]")',
    )
    assert not lines["checkpoint"][1] and "--against CHECKPOINT" in lines["checkpoint"][2]


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"boxes": [[8, 16, 52, 48], [50, 10, 90, 30]]}, "50.0% of 4 detections above 0.3 match"),
        ({"sigma": [[1.2, 2.4, 3.6, 4.8], [0.6, 0.6, 0.6, 0.6]]}, "sigma 20.00% off in the median (+20.00%)"),
        ({"labels": [1, 1]}, "50.0% of 4 detections above 0.3 match"),
        (NOTHING, "0.0% of 2 detections above 0.3 match"),
    ],
    ids=["box", "sigma", "label", "nothing"],
)
def test_verify__an_engine_that_disagrees(engine: Engine, frames: Path, changed: Rows, detail: str) -> None:
    bundle = engine(ANSWER | changed)
    done = verify(bundle, "--frames", frames, "--json")
    assert isinstance(done.exception, ArtifactError), done.output
    assert "tensorrt m.engine against onnxruntime cpu" in str(done.exception)
    assert f"ptedge build {bundle} --force" in str(done.exception)
    document, lines = json.loads(done.stdout), lines_of(done)
    assert document["passed"] is False and document["compared_nothing"] is None
    assert detail in lines["tensorrt m.engine against onnxruntime cpu, black"][2]
    assert not lines["tensorrt m.engine against onnxruntime cpu, frames"][0]
    assert lines["tensorrt m.engine, layers"] == (
        *(True, False),
        "the first layer that departs was not looked for: that takes --against CHECKPOINT, torch and onnx",
    )


def test_verify__one_backend_alone_compares_nothing(bundle: Path, frames: Path) -> None:
    done = verify(bundle, "--frames", frames, "--json")
    document = json.loads(done.stdout)
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == document["compared_nothing"]
    assert str(done.exception) == (
        f"{bundle}: nothing was compared, as only one backend ran (cpu), and no checkpoint. "
        f"Build an engine for this device (ptedge build {bundle}), or compare with the checkpoint where torch is "
        f"installed: ptedge verify {bundle} --against CHECKPOINT"
    )
    assert document["passed"] is False and document["compared_detections"] == 0


def test_verify__the_engine_alone_compares_nothing(engine: Engine) -> None:
    bundle = engine()
    done = verify(bundle, "--backend", "tensorrt")
    assert isinstance(done.exception, InputError)
    assert str(done.exception).endswith(f"Let the CPU answer as well: ptedge verify {bundle} --backend cpu,tensorrt")


def test_verify__no_detection_on_either_side_compares_nothing(
    engine: Engine, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful = ANSWER | {"scores": [0.29, 0.2]}  # below 0.3, from where a detection is expected on the other side
    monkeypatch.undo()  # onnx makes the graph
    tiny_bundle(bundle, tiny_onnx(doubtful, sides=True))
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)
    done = verify(engine(doubtful))
    assert isinstance(done.exception, InputError), done.exception
    assert "no image gave a detection that counts, on either side. Give frames that show objects: --frames" in str(
        done.exception
    )


def test_verify__a_checkpoint_beside_takes_torch_and_is_left_out(engine: Engine, bundle: Path) -> None:
    checkpoint = bundle.parent / "model.pt"
    checkpoint.write_bytes(b"weights")
    values = json.loads((bundle / "manifest.json").read_text())
    values["lineage"]["checkpoint"] = hashlib.sha256(b"weights").hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(values))
    done = verify(engine(), "--json")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["against"] is None
    assert lines_of(done)["checkpoint"] == (
        *(True, False),
        'not checked: it takes torch, which is not installed (pip install "ptedge[export]")',
    )


def test_verify__against_a_checkpoint_names_the_extra(bundle: Path) -> None:
    done = verify(bundle, "--against", bundle.parent / "model.pt")
    assert isinstance(done.exception, MissingExtraError)
    assert str(done.exception) == (
        "--against runs the checkpoint with torch, which is not installed. "
        'Install it with: pip install "ptedge[export]"; '
        "without --against, backends are compared with each other"
    )


def test_verify__as_a_process_without_the_packages(bundle: Path) -> None:
    """What is imported on the way, from the entry of the command line on."""
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from ptedge.__main__ import main
main()
"""
    command = [sys.executable, "-c", code, "verify", str(bundle), "--backend", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ptedge: {bundle}: nothing was compared") and done.stderr.count("\n") == 1
    assert "ok    onnxruntime cpu, promises" in done.stdout
