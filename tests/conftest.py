"""Shared by all tests: one thread, reproducible hypothesis, and where the large data lies."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from servers.buckets import ENVIRONMENT, bucket_server

from ptedge.signals import unwatch

# before torch or OpenCV is imported by a test: results and times then do not depend on the machine's cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
EXPORT_WITH_TORCH = r"export\.(graph|graph_ops|to_onnx|to_bundle|verify\.reference|verify\.near_ties)"
NEEDS_TORCH = re.compile(
    r"^(import|from) (torch|tiny_detector|training_shell|hostile_files"
    rf"|ptedge\.(detector|training|{EXPORT_WITH_TORCH}|artifacts\.checkpoint))\b",
    re.M,
)

# who starts the tests may ignore these (nohup, a shell's background jobs), and every process of a test would inherit it
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ptedge", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ptedge")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository; tests that ask for it skip where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data not found: {folder} does not exist")
    return folder


@pytest.fixture(scope="session")
def rclone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Endpoint of a server of buckets that checks secrets and ignores conditions; one for all tests."""
    with bucket_server("rclone", tmp_path_factory.mktemp("rclone") / "files") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Endpoint of a server of buckets that heeds conditions and takes any secret; one for all tests."""
    with bucket_server("moto", tmp_path_factory.mktemp("moto") / "files") as endpoint:
        yield endpoint


@pytest.fixture
def bucket_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The access key of both, and nothing of this machine's own."""
    pytest.importorskip("boto3", reason="boto3 is not installed (pip install boto3)")
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def signals_stay() -> Iterator[None]:
    """The entry of ``ptedge``, called inside this process, takes the signals over for good."""
    yield
    unwatch()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Without torch, as on a device, the files that import it at their head are left out (and told: see the header)."""
    return True if collection_path in WITHOUT_TORCH else None


def pytest_report_header() -> str:
    return f"torch is absent: {len(WITHOUT_TORCH)} test files that need it are left out" if WITHOUT_TORCH else ""


def _without_torch() -> set[Path]:
    if importlib.util.find_spec("torch") is not None:
        return set()
    files = (path for path in (ROOT / "tests").rglob("*.py") if path.name.startswith(("test_", "conftest")))
    return {path for path in files if NEEDS_TORCH.search(path.read_text("utf-8"))}


WITHOUT_TORCH = _without_torch()
