"""Every TensorRT name in the source exists in TensorRT 8.5, 10 and 11, or stands behind a question for the version.

The table comes from the real bindings (``.ci/tensorrt_names.py``), so this needs neither TensorRT nor a GPU.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

TABLE = json.loads((ROOT / "tests" / "tensorrt_names.json").read_text("utf-8"))
EVERYWHERE = set(TABLE["everywhere"])
SOME = TABLE["some"]
SOURCES = [
    path
    for folder in ("ptedge", "export", "runtime")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if any(words in path.read_text("utf-8") for words in ("import tensorrt", "tensorrt: Any"))  # or it is handed over
]

# Names that some version lacks and the source uses all the same: name -> why that is right.
_EIGHT = "only where the major version is below 10"
_OPTION = "only for an option that is refused where the version does not have it"
GATED: dict[str, str] = {
    "NetworkDefinitionCreationFlag.EXPLICIT_BATCH": _EIGHT,
    "BuilderFlag.FP16": _EIGHT,
    "BuilderFlag.INT8": _EIGHT,
    "BuilderFlag.OBEY_PRECISION_CONSTRAINTS": _EIGHT,
    "ILayer.precision": _EIGHT,
    "ILayer.set_output_type": _EIGHT,
    "BuilderFlag.VERSION_COMPATIBLE": _OPTION,
    "IBuilderConfig.hardware_compatibility_level": _OPTION,
    "IBuilderConfig.progress_monitor": "only where the version has IProgressMonitor",
}

# What a variable holds, where neither an annotation nor an assignment says so; a leading underscore does not count.
HOLDS = {
    "builder": "Builder",
    "network": "INetworkDefinition",
    "config": "IBuilderConfig",
    "builder_config": "IBuilderConfig",
    "parser": "OnnxParser",
    "runtime": "Runtime",
    "engine": "ICudaEngine",
    "context": "IExecutionContext",
    "timing_cache": "ITimingCache",
    "cache": "ITimingCache",
    "layer": "ILayer",
}
RETURNS = {
    "Builder.create_network": "INetworkDefinition",
    "Builder.create_builder_config": "IBuilderConfig",
    "Builder.build_serialized_network": "IHostMemory",
    "Builder.create_optimization_profile": "IOptimizationProfile",
    "IBuilderConfig.create_timing_cache": "ITimingCache",
    "IBuilderConfig.get_timing_cache": "ITimingCache",
    "Runtime.deserialize_cuda_engine": "ICudaEngine",
    "ICudaEngine.create_execution_context": "IExecutionContext",
    "ICudaEngine.create_engine_inspector": "EngineInspector",
    "OnnxParser.get_error": "ParserError",
    "INetworkDefinition.get_input": "ITensor",
    "INetworkDefinition.get_output": "ITensor",
    "INetworkDefinition.get_layer": "ILayer",
    "ILayer.get_output": "ITensor",
}


class Names(ast.NodeVisitor):
    """Collects (name, line) of everything that is taken from TensorRT in one file."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []
        self.asked: set[str] = set()  # names whose presence the file asks for with hasattr or getattr
        self.modules = {"tensorrt"}  # also where it is handed over as an argument
        self.types: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        self.modules |= {alias.asname or alias.name for alias in node.names if alias.name == "tensorrt"}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer = dict(self.types)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self._hold(argument.arg, self._annotated(argument.annotation))
        self.generic_visit(node)
        self.types = outer | {key: kind for key, kind in self.types.items() if key.startswith("self.")}

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._hold(self._key(node.target), self._annotated(node.annotation))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=True):
                    self._hold(self._key(one), self._type_of(value))
            else:
                self._hold(self._key(target), self._type_of(node.value))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not node.attr.startswith("__") and (name := self._name(node)):
            self.found.append((name, node.lineno))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in {"hasattr", "getattr"} and len(node.args) > 1:
            owner = self._owner(node.args[0])
            if owner is not None and isinstance(node.args[1], ast.Constant):
                self.asked.add(f"{owner}.{node.args[1].value}".lstrip("."))
        self.generic_visit(node)

    def _name(self, node: ast.Attribute) -> str | None:
        owner = self._owner(node.value)
        return None if owner is None else f"{owner}.{node.attr}".lstrip(".")

    def _owner(self, node: ast.expr) -> str | None:
        """The class an expression is, or is an instance of; "" for the module, ``None`` for anything else."""
        if isinstance(node, ast.Name) and node.id in self.modules:
            return ""
        if isinstance(node, ast.Attribute) and self._name(node) in EVERYWHERE | SOME.keys():
            name = self._name(node)
            return name if name is not None and "." not in name else None
        return self._type_of(node)

    def _type_of(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = self._name(node.func)
            return None if name is None else RETURNS.get(name, name if "." not in name else None)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules:
            return None if node.attr.startswith("__") else node.attr  # a class under another name
        key = self._key(node)
        return self.types.get(key, HOLDS.get(key.removeprefix("self.").lstrip("_"))) if key else None

    def _annotated(self, annotation: ast.expr | None) -> str | None:
        if annotation is None or ast.unparse(annotation) == "Any":
            return None  # as good as none
        if isinstance(annotation, ast.BinOp):  # trt.ICudaEngine | None
            return self._annotated(annotation.left)
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return self._annotated(ast.parse(annotation.value, mode="eval").body)
        return self._name(annotation) if isinstance(annotation, ast.Attribute) else ""

    def _hold(self, key: str, kind: str | None) -> None:
        if key and kind is not None:
            self.types[key] = kind or "?"

    @staticmethod
    def _key(node: ast.expr) -> str:
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        return text if text.removeprefix("self.").isidentifier() else ""


def names_in(text: str) -> tuple[list[tuple[str, int]], set[str]]:
    """(Names used with their line, names asked for) in Python source; names that no known thing holds are left out."""
    reader = Names()
    tree = ast.parse(text)
    for node in ast.walk(tree):  # TYPE_CHECKING imports stand for those inside functions
        if isinstance(node, ast.Import):
            reader.visit_Import(node)
    reader.visit(tree)
    return [(name, line) for name, line in reader.found if not name.startswith("?.")], reader.asked


def problems_in(text: str) -> Iterator[str]:
    """What is wrong with the TensorRT names in Python source."""
    found, asked = names_in(text)
    for name, line in found:
        if name in EVERYWHERE or {name, name.partition(".")[0]} & asked or name in GATED:
            continue
        yield f"line {line}: trt.{name} exists in {', '.join(SOME.get(name, ())) or 'no version'}"
    for name in asked - EVERYWHERE - SOME.keys():
        yield f"asks for trt.{name}, which exists in no version"


def test_table__holds_three_generations() -> None:
    assert {version.split(".")[0] for version in TABLE["versions"]} == {"8", "10", "11"}
    assert {"Builder", "IExecutionContext.execute_async_v3", "IExecutionContext.set_tensor_address"} <= EVERYWHERE
    assert SOME["IExecutionContext.execute_async_v2"] == ["8.5.3.1"]
    assert not any(version.startswith("11") for version in SOME["BuilderFlag.FP16"])
    assert not any(version.startswith("8") for version in SOME["BuilderFlag.VERSION_COMPATIBLE"])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_source__uses_names_of_every_version(path: Path) -> None:
    assert list(problems_in(path.read_text("utf-8"))) == []


@pytest.mark.parametrize("name", GATED)
def test_gated__names_are_used_and_exist_somewhere(name: str) -> None:
    assert name in SOME
    assert any(name == used for path in SOURCES for used, _ in names_in(path.read_text("utf-8"))[0])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "trt.Builder(0).create_builder_config().int8_calibrator",
            "int8_calibrator exists in 8.5.3.1, 10",
        ),
        ("flags = trt.BuilderFlag\nflags.STRICT_TYPES", "line 3: trt.BuilderFlag.STRICT_TYPES exists in"),
        ("trt.Bilder", "trt.Bilder exists in no version"),
        ("trt.Builder(0).max_workspace_size", "trt.Builder.max_workspace_size exists in no version"),
        ("trt.Runtime(0).deserialize_cuda_engine(b'').device_memory_size", "ICudaEngine.device_memory_size exists in"),
        ("self._context.execute_async_v2()", "IExecutionContext.execute_async_v2 exists in 8.5.3.1"),
        ("hasattr(trt.BuilderFlag, 'FB16')", "asks for trt.BuilderFlag.FB16"),
        ("trt.BuilderFlag.TF32", ""),
        ("hasattr(trt.BuilderFlag, 'FP16') and trt.BuilderFlag.FP16", ""),
        ("self._context.execute_async_v3(0)", ""),
    ],
)
def test_problems_in__finds_them(line: str, problem: str) -> None:
    found = list(problems_in(f"import tensorrt as trt\n{line}\n"))
    assert (problem in found[0]) if problem else (found == [])


def test_names_in__follows_annotations_and_assignments() -> None:
    text = """
import tensorrt as trt
def build(thing: trt.Builder, other: "trt.ICudaEngine | None", config: dict):
    net = thing.create_network(0)
    net.num_layers
    other.num_io_tensors
    config.items()
"""
    names = [name for name, _ in names_in(text)[0]]
    assert {"INetworkDefinition.num_layers", "ICudaEngine.num_io_tensors"} <= set(names)
    assert not any(name.endswith("items") for name in names)
