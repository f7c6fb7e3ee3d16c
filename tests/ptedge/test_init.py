"""``import ptedge``: what it offers, and what it does not load."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import ptedge


def test_import__loads_nothing_and_lists_everything() -> None:
    code = "import sys, ptedge; print(*sorted({name.split('.')[0] for name in sys.modules})); print(*dir(ptedge))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded, offered = (set(line.split()) for line in done.stdout.splitlines())
    assert not loaded & {"torch", "numpy", "cv2", "click", "onnxruntime", "supervision", "pandas"}
    assert set(ptedge.API) <= offered


@pytest.mark.parametrize("name", sorted(ptedge.API))
def test_api__every_name_is_there_and_explains_itself(name: str) -> None:
    value = getattr(ptedge, name)
    assert value.__doc__
    place, _, attribute = ptedge.API[name].partition(":")
    module = importlib.import_module(place)
    assert value is (getattr(module, attribute) if attribute else module)


def test_api__type_checkers_are_told_the_same() -> None:
    tree = ast.parse((ROOT / "ptedge" / "__init__.pyi").read_text("utf-8"))
    told = {f"{node.module}:{node.names[0].name}" for node in tree.body if isinstance(node, ast.ImportFrom)}
    loaded = {"ptedge.export.api:export" if place == "ptedge.export:" else place for place in ptedge.API.values()}
    assert told == loaded


def test_getattr__unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'ptedge' has no attribute 'laod'"):
        ptedge.laod  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(ptedge, "laod")


def test_export__is_a_part_and_a_function_whichever_comes_first() -> None:
    """A submodule of the same name is bound to the package as soon as anything of it is imported."""
    for first in ("ptedge.export", "import ptedge.export.cli"):
        code = (
            f"import ptedge; {first}; import ptedge.export.sign as part; print(callable(ptedge.export), part.__name__)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == "True ptedge.export.sign\n"


def test_api__functions_take_what_the_commands_take() -> None:
    """Each option of a command is a parameter of the function, under its own or the named other name, or left out."""
    from ptedge.cli import COMMANDS

    renamed = {"overrides": "settings", "config_file": "config", "keys": "trust"}
    for function, command in (("train", "train"), ("adapt", "adapt"), ("export", "export"), ("evaluate", "eval")):
        module, _, name = COMMANDS[command][0].partition(":")
        params = getattr(importlib.import_module(module), name).params
        wanted = {renamed.get(param.name, param.name): param.default for param in params}
        wanted.pop("as_json", None)
        given = inspect.signature(getattr(ptedge, function)).parameters
        assert set(wanted) <= set(given), command
        for key, value in wanted.items():
            if isinstance(value, (int, float, str)) and given[key].default is not inspect.Parameter.empty:
                assert given[key].default == value, f"{command} {key}"


def test_py_typed__is_there() -> None:
    assert (Path(ptedge.__file__).parent / "py.typed").exists()
