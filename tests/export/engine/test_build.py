"""``ptedge build`` without a GPU: what is recorded, what is skipped, what is told. The builder is stood in for."""

from __future__ import annotations

import hashlib
import json
import types
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from keys import key_pair
from small_graph import small_graph
from tiny_model import tiny_manifest

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, open_bundle, write_bundle
from ptedge.artifacts.engine_file import EngineRecord, Platform
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.trust import Trust, require_engine
from ptedge.errors import ArtifactError, BackendError, InputError
from ptedge.export.engine import build as engine
from ptedge.export.engine import into_bundle
from ptedge.export.engine.build import build_engine, default_timing_cache, memory_advice
from ptedge.export.engine.options import BuildOptions
from ptedge.export.engine.process import GraphRefusedError
from ptedge.export.sign import sign_all
from ptedge.export.stages import Stages
from ptedge.stages.settings import Selection

HERE = Platform("10.3.0", "12.6", "Orin", "8.7")


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    manifest = Manifest(class_names=("car",), input_size=(96, 160), anchors=((10.0, 20.0),), backbone="b")
    return write_bundle(tmp_path / "bundle", manifest, small_graph(1.0))


def _fake_machine(monkeypatch: pytest.MonkeyPatch, jobs: list[dict[str, Any]]) -> None:
    def work(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        jobs.append(job)
        Path(job["out"]).write_bytes(f"engine {len(jobs)}".encode())
        return {"seconds": 61.5, "memory_mb": 2222}

    monkeypatch.setattr(engine, "_look_around", lambda: (HERE, 6 << 30))
    monkeypatch.setattr(into_bundle, "run_worker", work)


def test_build_engine__is_recorded_and_the_bundle_still_opens(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    record, new = build_engine(bundle.path, BuildOptions(workspace_mb=512, tf32=True))
    assert new
    assert (record.file, record.flags, record.workspace_mb) == ("model.orin-10.3.0-fp32.engine", ("tf32",), 512)
    assert (record.seconds, record.memory_mb, record.onnx_sha256) == (61.5, 2222, bundle.model_hash)
    assert open_bundle(bundle.path).manifest.engines == (record,)
    assert (bundle.path / record.file).read_bytes() == b"engine 1"  # untouched TensorRT output
    assert sorted(p.name for p in bundle.path.iterdir()) == [MANIFEST_NAME, "model.onnx", record.file]


def test_build_engine__again_only_when_something_changed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    first, _ = build_engine(bundle.path, BuildOptions())
    assert build_engine(bundle.path, BuildOptions()) == (first, False)
    assert build_engine(bundle.path, BuildOptions(), force=True)[1]
    assert build_engine(bundle.path, BuildOptions(tf32=True))[1]
    (bundle.path / first.file).write_bytes(b"broken")
    assert build_engine(bundle.path, BuildOptions(tf32=True))[1]
    (bundle.path / first.file).unlink()
    assert build_engine(bundle.path, BuildOptions(tf32=True))[1]
    monkeypatch.setattr(engine, "_look_around", lambda: (replace(HERE, tensorrt="10.4.0"), 6 << 30))
    assert build_engine(bundle.path, BuildOptions(tf32=True))[1]
    assert len(jobs) == 6
    assert len(open_bundle(bundle.path).manifest.engines) == 2  # of two TensorRT versions


def test_build_engine__a_failure_leaves_the_old_engine(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    first, _ = build_engine(bundle.path, BuildOptions())
    before = (bundle.path / MANIFEST_NAME).read_bytes()

    def die(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        Path(job["out"]).write_bytes(b"half")
        raise BackendError("killed")

    monkeypatch.setattr(into_bundle, "run_worker", die)
    with pytest.raises(BackendError, match="killed"):
        build_engine(bundle.path, BuildOptions(), force=True)
    assert (bundle.path / MANIFEST_NAME).read_bytes() == before
    assert sorted(p.name for p in bundle.path.iterdir()) == [MANIFEST_NAME, "model.onnx", first.file]


def test_build_engine__a_bare_onnx_file_has_no_place_for_it(bundle: Bundle) -> None:
    with pytest.raises(InputError, match="goes into a bundle folder"):
        build_engine(bundle.model_path, BuildOptions())


def test_memory_advice__says_what_is_needed_and_when_it_is_short() -> None:
    enough = memory_advice(100 << 20, 1024, 8 << 30, 16 << 30)
    assert "about 2900 MB" in enough  # 2,500 of the builder and four times the model
    assert "not be enough" not in enough
    assert "not be enough" in memory_advice(100 << 20, 1024, 8 << 30, 2 << 30)
    assert "not be enough" in memory_advice(100 << 20, 1024, 512 << 20, 16 << 30)


def test_default_timing_cache__in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_timing_cache() == tmp_path / "ptedge" / "tensorrt-timing.cache"


def test_records_of_the_manifest_survive_json(bundle: Bundle) -> None:
    record = EngineRecord("a.engine", "1", "2", "fp32", "10.3.0", "12.6", "Orin", "8.7", ("tf32",))
    manifest = replace(bundle.manifest, engines=(record,))
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json())), "m") == manifest
    assert asdict(record)["flags"] == ("tf32",)


def test_build_engine__signed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    private, public = key_pair(tmp_path)
    trust = Trust.read([public])
    assert trust is not None
    others, _ = build_engine(bundle.path, BuildOptions())  # nobody knows who built this one
    record, new = build_engine(bundle.path, BuildOptions(), sign=private)
    assert new and (bundle.path / record.file).read_bytes() == b"engine 2"
    require_engine(bundle.path, record, trust)
    assert build_engine(bundle.path, BuildOptions(), sign=private) == (record, False)
    assert jobs[1]["model_sha256"] == bundle.model_hash
    build_engine(bundle.path, BuildOptions(), force=True)
    assert not (bundle.path / (others.file + ".sig")).exists()  # of an engine that is no more


def test_build_engine__trust_comes_before_the_model_is_read(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    private, public = key_pair(tmp_path)
    trust = Trust.read([public])
    with pytest.raises(ArtifactError, match=r"bundle\.sig is missing"):
        build_engine(bundle.path, BuildOptions(), trust=trust)
    assert jobs == []
    sign_all(bundle.path, private)
    build_engine(bundle.path, BuildOptions(), trust=trust, sign=private)
    open_bundle(bundle.path, trust)
    assert len(jobs) == 1


SELECTION = Selection(anchors=((16.0, 16.0),), proposals=(4, 2), proposal_nms=0.7, candidates=4, nms=0.5)


@pytest.fixture
def named(tmp_path: Path) -> Bundle:
    """A bundle whose graph may be cut; what it is cut into is stood in for."""
    manifest = tiny_manifest(input_size=(96, 160), selection=SELECTION)
    return write_bundle(tmp_path / "named", manifest, small_graph(1.0))


def _fussy_machine(monkeypatch: pytest.MonkeyPatch, jobs: list[dict[str, Any]], refused: str) -> None:
    """Refuses the graph of this content."""

    def work(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        content = Path(job["model"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == job["model_sha256"]
        jobs.append(job)
        if (content[:3].decode("latin1") if content[:3] in (b"one", b"two") else "whole") == refused:
            raise GraphRefusedError("Could not find any implementation for node {ForeignNode[/TopK]}")
        Path(job["out"]).write_bytes(f"engine {len(jobs)}".encode())
        return {"seconds": 61.5, "memory_mb": 2222}

    monkeypatch.setattr(engine, "_look_around", lambda: (HERE, 6 << 30))
    monkeypatch.setattr(into_bundle, "run_worker", work)
    monkeypatch.setattr(into_bundle, "cut_stages", lambda model: Stages(b"one", b"two"))


def test_build_engine__two_stages_where_the_one_graph_is_refused(
    named: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[dict[str, Any]] = []
    said: list[str] = []
    _fussy_machine(monkeypatch, jobs, "whole")
    first, new = build_engine(named.path, BuildOptions(), tell=said.append)
    assert new and len(jobs) == 3
    assert any("does not take the one graph: Could not find any implementation" in line for line in said)
    assert any("two stages instead" in line for line in said)
    records = open_bundle(named.path).manifest.engines
    files = ["first_stage.orin-10.3.0-fp32.engine", "second_stage.orin-10.3.0-fp32.engine"]
    assert [(r.stage, r.file) for r in records] == list(zip(("first", "second"), files, strict=True))
    assert first == records[0] and {r.onnx_sha256 for r in records} == {named.model_hash}
    assert [(named.path / file).read_bytes() for file in files] == [b"engine 2", b"engine 3"]
    assert build_engine(named.path, BuildOptions()) == (first, False)  # and not tried again, unless it is forced
    (named.path / files[1]).unlink()
    assert build_engine(named.path, BuildOptions(), split=True)[1] and len(jobs) == 5
    assert not [p.name for p in named.path.iterdir() if p.name.startswith(".")]


def test_build_engine__when_a_stage_is_refused_too_nothing_stays(
    named: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[dict[str, Any]] = []
    _fussy_machine(monkeypatch, jobs, "two")
    with pytest.raises(GraphRefusedError):
        build_engine(named.path, BuildOptions(), split=True)
    assert sorted(p.name for p in named.path.iterdir()) == [MANIFEST_NAME, "model.onnx"]
    assert open_bundle(named.path).manifest.engines == ()


def test_build_engine__an_old_bundle_has_no_second_way(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    _fussy_machine(monkeypatch, jobs, "whole")
    with pytest.raises(GraphRefusedError, match="ForeignNode"):
        build_engine(bundle.path, BuildOptions())
    assert len(jobs) == 1


def test_build_engine__of_a_bundle_of_two_graphs(named: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    _fussy_machine(monkeypatch, jobs, "")
    second = b"two" + small_graph(2.0)
    split = write_bundle(named.path, named.manifest, small_graph(1.0), second=second)
    build_engine(split.path, BuildOptions())
    assert [Path(job["model"]).name for job in jobs] == ["model.onnx", "second_stage.onnx"]
    assert [r.stage for r in open_bundle(split.path).manifest.engines] == ["first", "second"]


def test_build_engine__of_tensorrt_rtx_without_a_gpu(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    said: list[str] = []
    _fake_machine(monkeypatch, jobs)
    monkeypatch.setattr(engine, "_look_around", lambda: pytest.fail("no GPU is asked for"))
    monkeypatch.setattr(engine, "load_tensorrt", lambda backend: types.SimpleNamespace(__version__="1.7.1.116"))
    record, new = build_engine(bundle.path, BuildOptions(), backend="tensorrt-rtx", tell=said.append)
    assert new and jobs[0]["backend"] == "tensorrt-rtx"
    assert (record.file, record.backend) == ("model.rtx-1.7.1.116-fp32.engine", "tensorrt-rtx")
    assert (record.gpu, record.cuda, record.compute_capability) == ("RTX", "", "8.0, 8.6, 8.9, 12.0")
    assert open_bundle(bundle.path).manifest.engines == (record,)
    assert build_engine(bundle.path, BuildOptions(), backend="tensorrt-rtx") == (record, False)
    assert "TensorRT-RTX 1.7.1.116" in said[0] and "a GPU is not needed" in said[0]


def test_build_engine__a_log_begins_anew(bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs: list[dict[str, Any]] = []
    _fake_machine(monkeypatch, jobs)
    (tmp_path / "log").write_text("of another build")
    build_engine(bundle.path, BuildOptions(), log=tmp_path / "log")
    assert jobs[0]["log"] == str(tmp_path / "log") and (tmp_path / "log").read_text() == ""
    build_engine(bundle.path, BuildOptions(), force=True)
    assert jobs[1]["log"] is None
