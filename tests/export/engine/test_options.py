"""What a builder is told, and what a version or a device lacks."""

from __future__ import annotations

import types
from typing import Any

import pytest

from ptedge.errors import InputError
from ptedge.export.engine import options as engine_options
from ptedge.export.engine.options import BuildOptions, leave_out_missing, set_options, set_rtx_options


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
        set_options(tensorrt, types.SimpleNamespace(num_DLA_cores=0), config, options, "fp16", print)


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
) -> None:
    monkeypatch.setattr(engine_options, "_has_symbol", lambda library, symbol: library.split(".")[0][3:] in there)
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
    told: list[str] = []
    leave_out_missing(tensorrt, config, told.append)
    assert found == [sources] and previewed == previews
    missing = [name for name in ("cublas", "cublasLt", "cudnn") if name not in there]
    assert told == [f"without kernels of {name}, whose library is not here" for name in missing]


def test_has_symbol__of_libraries_that_are_and_are_not_there() -> None:
    assert engine_options._has_symbol("libc.so.6", "malloc")
    assert not engine_options._has_symbol("libc.so.6", "cublasGetProperty")
    assert not engine_options._has_symbol("libnothing.so.77", "malloc")


def test_set_rtx_options__builds_for_cards_that_need_not_be_here() -> None:
    named = {f"SM{name}": f"card {name}" for name in (80, 86, 89, 120)}
    module = types.SimpleNamespace(
        ComputeCapability=types.SimpleNamespace(**named),
        MemoryPoolType=types.SimpleNamespace(WORKSPACE="workspace"),
        BuilderFlag=types.SimpleNamespace(TF32="tf32"),
    )
    told: dict[str, Any] = {"cards": {}, "off": []}
    config = types.SimpleNamespace(
        set_memory_pool_limit=lambda pool, size: told.update({pool: size}),
        clear_flag=told["off"].append,
        set_compute_capability=lambda card, i: told["cards"].update({i: card}),
    )
    set_rtx_options(module, config, BuildOptions(workspace_mb=64))
    assert config.num_compute_capabilities == 4
    assert told == {"cards": dict(enumerate(named.values())), "off": ["tf32"], "workspace": 64 << 20}
    set_rtx_options(module, config, BuildOptions(tf32=True))
    assert told["off"] == ["tf32"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (BuildOptions(dla=0), "--dla"),
        (BuildOptions(hardware="ampere_plus"), "--hardware"),
        (BuildOptions(version_compatible=True), "--version-compatible"),
        (BuildOptions(optimization_level=3), "--optimization-level"),
    ],
)
def test_set_rtx_options__what_it_does_not_have(options: BuildOptions, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} belongs to TensorRT; TensorRT-RTX does not have it"):
        set_rtx_options(None, None, options)
