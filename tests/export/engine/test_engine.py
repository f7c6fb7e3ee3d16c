"""``ptedge build`` without a GPU: the worker's life and death, what is skipped, what is told. Building needs a GPU."""

from __future__ import annotations

import json
import re
import sys
import types
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, Manifest, open_bundle, write_bundle
from ptedge.artifacts.engine_file import EngineRecord, Platform
from ptedge.errors import BackendError, InputError
from ptedge.export.engine import build as engine
from ptedge.export.engine import precision as engine_precision
from ptedge.export.engine import worker as engine_worker
from ptedge.export.engine.build import build_engine, default_timing_cache, memory_advice, run_worker
from ptedge.export.engine.precision import number_types
from ptedge.export.engine.worker import BuildOptions
from ptedge.export.verify.by_layer import graph_with_outputs

HERE = Platform("10.3.0", "12.6", "Orin", "8.7")


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    manifest = Manifest(class_names=("car",), input_size=(96, 160), anchors=((10.0, 20.0),), backbone="b")
    return write_bundle(tmp_path / "bundle", manifest, _half_model())


def _half_model() -> bytes:
    """float32 -> float16 product -> float32 exponential."""
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"], name="half_square"),
        helper.make_node("Cast", ["square"], ["wide"], name="up", to=TensorProto.FLOAT),
        helper.make_node("Exp", ["wide"], ["y"], name="exp"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def _child(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_run_worker__steps_are_told_and_the_result_returned() -> None:
    told: list[str] = []
    code = "import json,sys; job=json.load(open(sys.argv[1])); print('a library speaks'); print(json.dumps({'step': job['what']})); print(json.dumps({'done': {'seconds': 1.5}}))"  # fmt: skip  # noqa: E501
    assert run_worker({"what": "choosing kernels"}, told.append, _child(code)) == {"seconds": 1.5}
    assert len(told) == 1
    assert told[0].endswith("choosing kernels")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('print(\'{"error": "TensorRT cannot read the model: node 3"}\'); exit(1)', "cannot read the model: node 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed after .* memory ran out.*--workspace"),
        ("import os; os.kill(os.getpid(), 11)", "ended with signal SIGSEGV"),
        ("import sys; print('CUDA error 2', file=sys.stderr); exit(3)", "ended with status 3: CUDA error 2"),
        ("pass", "ended with status 0: it said nothing"),
    ],
)
def test_run_worker__failures_are_explained(code: str, words: str) -> None:
    with pytest.raises(BackendError, match=words):
        run_worker({}, lambda line: None, _child(code))


def _fake_machine(monkeypatch: pytest.MonkeyPatch, jobs: list[dict[str, Any]]) -> None:
    def work(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        jobs.append(job)
        Path(job["out"]).write_bytes(f"engine {len(jobs)}".encode())
        return {"seconds": 61.5, "memory_mb": 2222}

    monkeypatch.setattr(engine, "_look_around", lambda: (HERE, 6 << 30))
    monkeypatch.setattr(engine, "run_worker", work)


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

    monkeypatch.setattr(engine, "run_worker", die)
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


def test_number_types__as_the_graph_says() -> None:
    assert number_types(_half_model()) == {"low": "float16", "square": "float16", "wide": "float32", "y": "float32"}


class FakeTensor:
    def __init__(self, name: str, dtype: str) -> None:
        self.name, self.dtype = name, dtype


class FakeLayer:
    def __init__(self, kind: str, *outputs: FakeTensor) -> None:
        self.type, self.outputs, self.num_outputs = kind, outputs, len(outputs)
        self.precision = ""
        self.types: dict[int, str] = {}

    def get_output(self, i: int) -> FakeTensor:
        return self.outputs[i]

    def set_output_type(self, i: int, kind: str) -> None:
        self.types[i] = kind


def _fake_network(layers: list[FakeLayer]) -> tuple[Any, Any, Any, list[str]]:
    flags: list[str] = []
    tensorrt = types.SimpleNamespace(
        BuilderFlag=types.SimpleNamespace(FP16="FP16", INT8="INT8", OBEY_PRECISION_CONSTRAINTS="OBEY"),
        LayerType=types.SimpleNamespace(CONSTANT="constant", SHAPE="shape", IDENTITY="identity"),
        float32="float32",
        float16="float16",
    )
    network = types.SimpleNamespace(num_layers=len(layers), get_layer=lambda i: layers[i])
    return tensorrt, network, types.SimpleNamespace(set_flag=flags.append), flags


def test_allow_precision__tensorrt_8_is_held_to_what_the_graph_says() -> None:
    helper_layer = FakeLayer("shuffle", FakeTensor("(Unnamed Layer* 3)", "float32"))
    layers = [
        FakeLayer("identity", FakeTensor("low", "float16")),
        FakeLayer("elementwise", FakeTensor("square", "float16")),
        FakeLayer("identity", FakeTensor("wide", "float32")),
        FakeLayer("constant", FakeTensor("(Unnamed Layer* 4)", "float32")),
        helper_layer,
        FakeLayer("unary", FakeTensor("y", "float32")),
        FakeLayer("topk", FakeTensor("index", "int32")),
    ]
    tensorrt, network, config, flags = _fake_network(layers)
    engine_precision.allow_precision(tensorrt, network, config, _half_model(), "fp16")
    assert flags == ["FP16", "OBEY"]
    assert [layer.precision for layer in layers] == ["", "float16", "", "", "float32", "float32", ""]
    assert layers[5].types == {0: "float32"}


def _int8_model() -> bytes:
    """float16 product -> int8 product of it and its activation -> float32 exponential."""
    nodes = [
        helper.make_node("Cast", ["x"], ["low"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["low", "low"], ["square"], name="half_square"),
        helper.make_node("Cast", ["square"], ["wide"], name="up", to=TensorProto.FLOAT),
        *(
            node
            for name in ("wide", "weight")
            for node in (
                helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"], name=f"{name}_q"),
                helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [f"{name}_dq"], name=f"{name}_dq"),
            )
        ),
        helper.make_node("MatMul", ["wide_dq", "weight_dq"], ["sums"], name="matmul"),
        helper.make_node("Relu", ["sums"], ["active"], name="relu"),
        helper.make_node("Exp", ["active"], ["y"], name="exp"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "y")]
    constants = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5]),
        helper.make_tensor("zero", TensorProto.INT8, [], [0]),
        helper.make_tensor("weight", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0]),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], constants)
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def test_allow_precision__int8_kernels_are_left_free_and_the_rest_is_held() -> None:
    layers = [
        FakeLayer("identity", FakeTensor("low", "float16")),
        FakeLayer("elementwise", FakeTensor("square", "float16")),
        FakeLayer("identity", FakeTensor("wide", "float32")),
        FakeLayer("quantize", FakeTensor("wide_q", "int8")),
        FakeLayer("dequantize", FakeTensor("wide_dq", "float32")),
        FakeLayer("constant", FakeTensor("(Unnamed Layer* 5)", "float32")),
        FakeLayer("quantize", FakeTensor("weight_q", "int8")),
        FakeLayer("dequantize", FakeTensor("weight_dq", "float32")),
        FakeLayer("shuffle", FakeTensor("(Unnamed Layer* 8)", "float32")),
        FakeLayer("matmul", FakeTensor("sums", "float32")),
        FakeLayer("activation", FakeTensor("active", "float32")),
        FakeLayer("unary", FakeTensor("y", "float32")),
    ]
    tensorrt, network, config, flags = _fake_network(layers)
    engine_precision.allow_precision(tensorrt, network, config, _int8_model(), "int8")
    assert flags == ["INT8", "FP16", "OBEY"]
    assert [layer.precision for layer in layers] == ["", "float16", *[""] * 9, "float32"]


def test_allow_precision__int8_without_float16() -> None:
    model = graph_with_outputs(_int8_model(), ["y"], {"wide": np.zeros((2, 2), np.float32)})
    tensorrt, network, config, flags = _fake_network([FakeLayer("unary", FakeTensor("y", "float32"))])
    engine_precision.allow_precision(tensorrt, network, config, model, "int8")
    assert flags == ["INT8"]
    assert network.get_layer(0).precision == ""


def test_allow_precision__float32_needs_no_word() -> None:
    tensorrt, network, config, flags = _fake_network([])
    engine_precision.allow_precision(tensorrt, network, config, b"", "fp32")
    assert flags == []


def test_options__in_words() -> None:
    assert BuildOptions().flags() == ()
    assert BuildOptions(tf32=True, hardware="ampere_plus", dla=1).flags() == ("tf32", "hardware_ampere_plus", "dla_1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (BuildOptions(optimization_level=3), "--optimization-level needs TensorRT 8.6"),
        (BuildOptions(version_compatible=True), "--version-compatible needs TensorRT 8.6"),
        (BuildOptions(hardware="ampere_plus"), "--hardware needs TensorRT 8.6"),
        (BuildOptions(dla=0), "this device has no DLA cores"),
    ],
)
def test_set_options__what_the_version_or_device_lacks(options: BuildOptions, words: str) -> None:
    tensorrt = types.SimpleNamespace(
        __version__="8.5.3.1",
        BuilderFlag=types.SimpleNamespace(TF32="TF32"),
        MemoryPoolType=types.SimpleNamespace(WORKSPACE="W"),
        TacticSource=types.SimpleNamespace(),
    )
    config = types.SimpleNamespace(
        set_memory_pool_limit=lambda pool, size: None,
        clear_flag=lambda flag: None,
        get_tactic_sources=lambda: 0,
        set_tactic_sources=lambda sources: None,
    )
    with pytest.raises(InputError, match=words):
        engine_worker._set_options(tensorrt, types.SimpleNamespace(num_DLA_cores=0), config, options, "fp16")


@pytest.mark.parametrize(
    ("there", "sources", "previews"),
    [
        ((), 0b10000, [("own products", True)]),
        (("cublas", "cudnn"), 0b10101, [("own products", True)]),
        (("cublas", "cublasLt"), 0b10011, []),
        (("cublas", "cublasLt", "cudnn"), 0b10111, []),
    ],
)
def test_leave_out_missing__kernels_whose_library_is_not_there(
    there: tuple[str, ...],
    sources: int,
    previews: list[tuple[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(engine_worker, "_has_symbol", lambda library, symbol: library.split(".")[0][3:] in there)
    tensorrt = types.SimpleNamespace(
        TacticSource=types.SimpleNamespace(CUBLAS=0, CUBLAS_LT=1, CUDNN=2, JIT=4),
        PreviewFeature=types.SimpleNamespace(DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805="own products"),
    )
    found: list[int] = []
    previewed: list[tuple[str, bool]] = []
    config = types.SimpleNamespace(
        get_tactic_sources=lambda: 0b10111,
        set_tactic_sources=found.append,
        set_preview_feature=lambda feature, on: previewed.append((feature, on)),
    )
    engine_worker._leave_out_missing(tensorrt, config)
    assert found == [sources] and previewed == previews
    told = [json.loads(line)["step"] for line in capsys.readouterr().out.splitlines()]
    missing = [name for name in ("cublas", "cublasLt", "cudnn") if name not in there]
    assert told == [f"without kernels of {name}, whose library is not here" for name in missing]


def test_has_symbol__of_libraries_that_are_and_are_not_there() -> None:
    assert engine_worker._has_symbol("libc.so.6", "malloc")
    assert not engine_worker._has_symbol("libc.so.6", "cublasGetProperty")
    assert not engine_worker._has_symbol("libnothing.so.77", "malloc")


@pytest.mark.parametrize(
    ("words", "major", "tf32", "expected"),
    [
        (
            "Could not find any implementation for node {X}",
            8,
            False,
            "install cuBLAS of the CUDA version .*, or .*--tf32",
        ),
        ("Could not find any implementation for node {X}", 8, True, "install cuBLAS .* is for$"),
        ("Could not find any implementation for node {X}", 10, False, "^$"),
        ("out of memory", 8, False, "^$"),
    ],
)
def test_advice__where_tensorrt_8_finds_no_kernel(words: str, major: int, tf32: bool, expected: str) -> None:
    assert re.search(expected, engine_worker._advice(words, major, BuildOptions(tf32=tf32)))


def test_records_of_the_manifest_survive_json(bundle: Bundle) -> None:
    record = EngineRecord("a.engine", "1", "2", "fp32", "10.3.0", "12.6", "Orin", "8.7", ("tf32",))
    manifest = replace(bundle.manifest, engines=(record,))
    assert Manifest.from_json(json.loads(json.dumps(manifest.to_json())), "m") == manifest
    assert asdict(record)["flags"] == ("tf32",)


def test_the_models_of_these_tests_are_valid() -> None:
    for model in (_half_model(), _int8_model()):
        onnx.checker.check_model(onnx.load_from_string(model), full_check=True)
