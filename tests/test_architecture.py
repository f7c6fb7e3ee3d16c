"""The rules of the house, held by reading the source: who imports whom, what is loaded when, how long a file is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT
from source_tree import (
    FILES,
    MODULES,
    at_head,
    edges,
    face_of,
    functions_of,
    home_of,
    imports_in,
    literals,
    members_of,
    module_of,
    name_of,
    package_of,
    part_of,
    private_names_reached,
    tree_of,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# not installed on a device
WORKSHOP_ONLY = {
    "torch",
    "torchvision",
    "timm",
    "onnx",
    "rich",
    "tomli_w",
    "matplotlib",
    "tensorboard",
    "h5py",
    "kornia",
}
HEAVY = {"torch", "torchvision", "timm", "onnx", "cv2", "onnxruntime", "tensorrt", "pycuda"}
MOST_LINES = 350
MOST_LINES_OF_A_TEST = 400
MOST_LINES_OF_A_FUNCTION = 45  # its docstring not counted
MOST_PARAMETERS = 10
MOST_MODULES = 22  # in a folder
# each may import those before it, and no other
CORE = (
    "ptedge",
    "machine",
    "stores",
    "shards",
    "drawing",
    "frames.formats",
    "frames",
    "data.parsing",
    "data",
    "data.public",
    "data.writing",
    "detector",
    "stages",
    "drift",
)
CORE += ("artifacts", "backends", "scores", "commands", "api", "loop")
# each needs only those before it, by whatever way; what is not named here serves all of them
TRAINING = ("losses", "batches", "watch", "task", "loop", "run", "mutual", "pretrain", "adapt", "cli")


# of the files beside training/ and the detector; the rest of export/ serves `build` and `verify` on a device
WITH_TORCH = ("ptedge/artifacts/checkpoint.py", "ptedge/backends/checkpoint_predictor.py")
WITH_TORCH += ("export/graph.py", "export/graph_ops.py", "export/to_onnx.py", "export/to_bundle.py")
WITH_TORCH += ("export/verify/reference.py", "export/verify/near_ties.py", "samples/effects.py")


def may_use_torch(path: Path) -> bool:
    return name_of(path) in WITH_TORCH or name_of(path).startswith(("ptedge/detector/", "training/"))


def imports_at_head(path: Path) -> set[str]:
    """Top-level names that importing the file imports."""
    return {name.split(".")[0] for name, _ in imports_in(path, at_head(path))}


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


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Each set of nodes that reach one another."""
    reach = {node: reachable(graph, node) for node in graph}
    found = {tuple(sorted(other for other in graph if other in reach[node] and node in reach[other])) for node in graph}
    return [list(circle) for circle in sorted(found) if circle]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Nodes that a walk from ``start`` comes to; itself only where there is a way back."""
    found: set[str] = set()
    ahead = list(graph.get(start, ()))
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += graph.get(node, ())
    return found


NEEDS = {module_of(path): {name for name, _ in edges(path)} for path in FILES}


def test_circles__are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]


def test_modules__need_each_other_in_no_circle() -> None:
    assert circles(NEEDS) == []


def test_core__each_package_imports_only_those_below_it() -> None:
    ranks = {name if name == "ptedge" else f"ptedge.{name}": rank for rank, name in enumerate(CORE)}
    assert {home_of(module) for module in NEEDS if part_of(module) == "ptedge"} == set(ranks)
    wrong = [
        f"{module} needs {other}"
        for module, others in NEEDS.items()
        for other in others
        if home_of(module) in ranks and ranks[home_of(other)] > ranks[home_of(module)]
    ]
    assert not wrong


def test_training__each_stage_needs_only_those_below_it() -> None:
    def rank_of(module: str) -> int:
        name = module.split(".")[2] if module.startswith("ptedge.training.") else ""
        return TRAINING.index(name) if name in TRAINING else -1

    wrong = [
        f"{module} needs {other}"
        for module in NEEDS
        if rank_of(module) >= 0
        for other in reachable(NEEDS, module)
        if rank_of(other) > rank_of(module)
    ]
    assert not wrong


@pytest.mark.parametrize("package", sorted(path for path in FILES if path.name == "__init__.py"), ids=name_of)
def test_faces__name_what_is_there(package: Path) -> None:
    module = module_of(package)
    there = {name.rpartition(".")[2] for name, path in MODULES.items() if package_of(name) == module}
    face = face_of(package)
    assert face is not None, "each package says in __all__ what others may import"
    assert face == sorted(face)
    assert [name for name in face if name not in there | set(members_of(tree_of(package).body))] == []


def test_faces__others_import_only_what_they_show() -> None:
    wrong = []
    for path in FILES:
        for name, line in edges(path):
            if MODULES[name].name != "__init__.py" and package_of(name) != home_of(module_of(path)):
                shown = face_of(MODULES[package_of(name)]) or []
                if name.rpartition(".")[2] not in shown:
                    wrong.append(f"{name_of(path)}:{line} imports {name}")
    assert not wrong, "let their package show them (__all__ in its __init__.py), or import what it shows already"


def test_faces__show_nothing_that_nobody_wants() -> None:
    wanted = {name for path in FILES for name, _ in edges(path) if package_of(name) != home_of(module_of(path))}
    wanted |= {text.partition(":")[0] for text in literals()}  # commands are named by strings
    pages = "".join(page.read_text("utf-8") for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    idle = [
        f"{module_of(package)}.{name}"
        for package in MODULES.values()
        if package.name == "__init__.py"
        for name in face_of(package) or []
        if (full := f"{module_of(package)}.{name}") in MODULES and full not in wanted and full not in pages
    ]
    assert not idle


def test_private_names_reached__imported_or_as_an_attribute(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        "import torch\nfrom ptedge.files import _sync, atomic_write\n"
        "class Own:\n    def __init__(self, model):\n"
        "        self._mine = model.backbone._stages\n        torch._foreach_lerp_(self._mine)\n"
    )
    assert private_names_reached(file) == ["line 2: _sync", "line 5: model.backbone._stages"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_private_names__stay_in_their_module(path: Path) -> None:
    assert private_names_reached(path) == []


def test_functions__fit_a_screen_and_take_few_values() -> None:
    long, many = [], []
    for path in FILES:
        for node, lines, parameters in functions_of(path):
            where = f"{name_of(path)}:{node.lineno} {node.name}"
            long += [f"{where}: {lines} lines"] if lines > MOST_LINES_OF_A_FUNCTION else []
            command = any("click." in ast.unparse(decorator) for decorator in node.decorator_list)
            command = command or f"{module_of(path)}:{node.name}" in literals()  # its twin in Python (ptedge.API)
            many += [f"{where}: {parameters}"] if parameters > MOST_PARAMETERS and not command else []
    assert not long
    assert not many


def test_folders__can_be_taken_in_at_a_glance() -> None:
    folders = {path.parent for path in FILES}
    counts = {name_of(folder): len([p for p in folder.glob("*.py") if p.name != "__init__.py"]) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > MOST_MODULES}
