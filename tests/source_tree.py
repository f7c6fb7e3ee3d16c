"""The source as data: which files there are, what they import and which names they hold. Nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from places import ROOT

PARTS = ("training", "export", "runtime", "samples")
FOLDERS = ("ptedge", *PARTS)
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """Path below the repository."""
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """Dotted name as installed: training/losses/target.py is ptedge.training.losses.target."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "ptedge" else ("ptedge", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def package_of(module: str) -> str:
    """The package that a module, or a package, lies in."""
    return module.rpartition(".")[0]


def home_of(module: str) -> str:
    """The package whose code this is: a package's own, for its __init__."""
    return module if MODULES[module].name == "__init__.py" else package_of(module)


def part_of(module: str) -> str:
    """training, export, runtime or samples; else ptedge, the core."""
    words = module.split(".")
    return words[1] if len(words) > 1 and words[1] in PARTS else "ptedge"


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text("utf-8"), filename=str(path))


def imports_in(path: Path, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """Absolute names imported, with the line; relative ones resolved. ``from a import b`` gives a and a.b."""
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


def at_head(path: Path) -> Iterator[ast.AST]:
    """What runs when the file is imported: not inside functions, not under TYPE_CHECKING."""

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            yield child
            yield from walk(child)

    return walk(tree_of(path))


def edges(path: Path) -> Iterator[tuple[str, int]]:
    """Modules of the house that a file needs, anywhere in it: of ``from package import name`` the module name is in."""
    own = module_of(path)
    found = list(imports_in(path, ast.walk(tree_of(path))))
    for name, line in found:
        if name in MODULES and name != own:
            # the package itself is needed only for a name that its face defines
            if MODULES[name].name == "__init__.py" and not any(
                other.startswith(f"{name}.") and at == line and other not in MODULES for other, at in found
            ):
                continue
            yield name, line


def members_of(body: Iterable[ast.stmt]) -> dict[str, ast.stmt]:
    """Names that statements define, each with its statement."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0]: node for alias in node.names}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            found |= members_of(node.body) | members_of(getattr(node, "orelse", []))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id: node for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Methods and fields of a class, those that its methods set on ``self`` included."""
    on_self = {
        inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute)
        and isinstance(inner.ctx, ast.Store)
        and isinstance(inner.value, ast.Name)
        and inner.value.id == "self"
    }
    return set(members_of(node.body)) | on_self


def resolves(dotted: str) -> bool:
    """Whether a dotted name means a module, one of its names, or a member of one of its classes."""
    words = dotted.split(".")
    if words[0] == "ptedge" and len(words) > 1 and not (place := api().get(words[1], ":")).endswith(":"):
        return resolves(".".join([place.replace(":", "."), *words[2:]]))
    for count in range(len(words), 0, -1):
        path = MODULES.get(".".join(words[:count]))
        if path is None:
            continue
        rest = words[count:]
        if not rest:
            return True
        node = members_of(tree_of(path).body).get(rest[0])
        if node is None or len(rest) == 1:
            return node is not None
        return len(rest) == 2 and isinstance(node, ast.ClassDef) and rest[1] in attributes_of(node)
    return False


@cache
def api() -> dict[str, str]:
    """Names that ``ptedge`` itself loads when they are asked for -> module:attribute."""
    node = members_of(tree_of(MODULES["ptedge"]).body)["API"]
    assert isinstance(node, ast.Assign)
    found: dict[str, str] = ast.literal_eval(node.value)
    return found


@cache
def literals() -> set[str]:
    """All strings in the code."""
    nodes = (node for path in FILES for node in ast.walk(tree_of(path)))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


@cache
def face_of(package: Path) -> list[str] | None:
    """``__all__`` of a package's __init__.py; None where it has none."""
    node = members_of(tree_of(package).body).get("__all__")
    return list(ast.literal_eval(node.value)) if isinstance(node, ast.Assign) else None


def functions_of(path: Path) -> Iterator[tuple[Function, int, int]]:
    """Each function with the lines of its body, docstring left out, and its parameters, self left out."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            count = len([one for one in every if one is not None and one.arg not in {"self", "cls"}])
            yield node, (body[-1].end_lineno or 0) - body[0].lineno + 1, count


NOT_PRIVATE = {"_replace", "_asdict", "_fields"}  # of named tuples, documented
NOT_PRIVATE |= {"_workers", "_shutdown_workers"}  # of torch's DataLoader, which has no public way to end its workers


def is_private(name: str) -> bool:
    """Whether a name is its module's own affair."""
    return name.startswith("_") and not name.endswith("__") and name not in NOT_PRIVATE


def private_names_reached(path: Path) -> list[str]:
    """Private names of other modules of the house that a file imports, or reaches as an attribute of what it holds."""
    tree = tree_of(path)
    nodes = list(ast.walk(tree))
    found, own, foreign = [], set(), set()
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            house = isinstance(node, ast.ImportFrom) and (node.level > 0 or (node.module or "").startswith("ptedge"))
            names = [alias.name for alias in node.names]
            found += [f"line {node.lineno}: {name}" for name in names if house and is_private(name)]
            if not house:
                foreign |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            own |= attributes_of(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own.add(node.name)
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            root: ast.expr = node
            while isinstance(root, ast.Attribute):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in foreign):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found
