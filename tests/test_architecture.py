"""The rules of the house, held by reading the source: who imports whom, what is loaded when, how long a file is."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PARTS = ("training", "export", "runtime", "samples")
FOLDERS = ("ptedge", *PARTS)
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
# not installed on a device
WORKSHOP_ONLY = {"torch", "torchvision", "timm", "onnx", "rich", "tomli_w", "matplotlib", "tensorboard", "h5py"}
HEAVY = {"torch", "torchvision", "timm", "onnx", "cv2", "onnxruntime", "tensorrt", "pycuda"}
MOST_LINES = 350
MOST_LINES_OF_A_TEST = 400


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Dotted name as installed: training/losses/target.py is ptedge.training.losses.target."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "ptedge" else ("ptedge", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """training, export, runtime or samples; else ptedge, the core."""
    words = module.split(".")
    return words[1] if len(words) > 1 and words[1] in PARTS else "ptedge"


def may_use_torch(path: Path) -> bool:
    files = ("ptedge/artifacts/checkpoint.py", "ptedge/backends/checkpoint_predictor.py")
    return name_of(path) in files or name_of(path).startswith(("ptedge/detector/", "training/", "export/"))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def imports_in(path: Path, nodes: Iterator[ast.AST]) -> Iterator[tuple[str, int]]:
    """Absolute names imported, with the line; relative ones resolved."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield stem, node.lineno
            yield from ((f"{stem}.{alias.name}", node.lineno) for alias in node.names)


def imports_at_head(path: Path) -> set[str]:
    """Top-level names that importing the file imports (not those inside functions or under TYPE_CHECKING)."""

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            yield child
            yield from walk(child)

    return {name.split(".")[0] for name, _ in imports_in(path, walk(tree_of(path)))}


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_files__are_found() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports__parts_know_the_core_and_themselves_only(path: Path) -> None:
    own = part_of(module_of(path))
    wrong = [
        f"line {line}: {name}"
        for name, line in imports_in(path, ast.walk(tree_of(path)))
        if name.split(".")[0] == "ptedge" and part_of(name) not in {own, "ptedge"}
    ]
    assert not wrong, f"{name_of(path)} belongs to {own}"


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "cli.py"], ids=name_of)
def test_imports__command_files_load_nothing_heavy(path: Path) -> None:
    assert not imports_at_head(path) & HEAVY


@pytest.mark.parametrize("path", [p for p in FILES if not may_use_torch(p)], ids=name_of)
def test_imports__device_files_have_no_workshop_package_at_their_head(path: Path) -> None:
    assert not imports_at_head(path) & WORKSHOP_ONLY


def test_imports__torch_only_where_there_are_weights() -> None:
    wrong = [
        f"{name_of(path)}:{line}"
        for path in FILES
        if not may_use_torch(path)
        for name, line in imports_in(path, ast.walk(tree_of(path)))
        if name.split(".")[0] in {"torch", "torchvision", "timm"}
    ]
    assert not wrong


def test_imports__everything_for_the_device_loads_without_workshop_packages() -> None:
    modules = [module_of(path) for path in FILES if not may_use_torch(path) and path.name != "__main__.py"]
    run_python(f"""
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {WORKSHOP_ONLY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
for name in {modules!r}:
    importlib.import_module(name)
""")


def test_help__loads_neither_torch_nor_opencv_nor_a_backend() -> None:
    loaded = run_python("""
import sys
sys.argv = ["ptedge", "--help"]
from ptedge.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
print("LOADED", *sorted({name.split(".")[0] for name in sys.modules}))
""")
    assert "Usage:" in loaded
    assert not set(loaded.rpartition("LOADED")[2].split()) & (HEAVY | WORKSHOP_ONLY | {"numpy"})


def test_boxes__only_the_coco_reader_knows_xywh() -> None:
    def is_width(node: ast.expr) -> bool:
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)

    wrong = []
    for path in FILES:
        if name_of(path) == "ptedge/data/coco.py":
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and "xywh" in node.name.replace("cxcywh", ""):
                wrong.append(f"{name_of(path)}:{node.lineno} {node.name}")
            # [x1, y1, x2 - x1, y2 - y1] written out
            if isinstance(node, ast.List) and [is_width(value) for value in node.elts] == [False, False, True, True]:
                wrong.append(f"{name_of(path)}:{node.lineno} {ast.unparse(node)}")
    assert not wrong


def test_packages__every_folder_is_named_in_pyproject() -> None:
    on_disk = {module_of(path) for path in FILES if path.name == "__init__.py"}
    assert on_disk == set(PROJECT["tool"]["setuptools"]["packages"])
    without_init = {name_of(path.parent) for path in FILES if not (path.parent / "__init__.py").is_file()}
    assert not without_init


def test_files__no_longer_than_a_reader_bears() -> None:
    limits = dict.fromkeys(FILES, MOST_LINES)
    limits |= dict.fromkeys((ROOT / "tests").rglob("*.py"), MOST_LINES_OF_A_TEST)
    counts = {path: len(path.read_text("utf-8").splitlines()) for path in limits}
    assert not {name_of(path): count for path, count in counts.items() if count > limits[path]}


def test_files__none_hides_a_package_of_the_same_name() -> None:
    assert not [name_of(path) for path in FILES if path.stem in {"onnx", "tensorrt", "torch", "onnxruntime"}]


def test_docstrings__every_module_and_every_public_name_has_one() -> None:
    bare = []
    for path in FILES:
        tree = tree_of(path)
        if not ast.get_docstring(tree):
            bare.append(name_of(path))
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                bare += [] if ast.get_docstring(node) else [f"{name_of(path)}:{node.lineno} {node.name}"]
    assert not bare


def test_code__nothing_is_evaluated_from_text() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}
    ]
    assert not wrong
