"""Whatever code and documents point at is there: sections, pages, anchors, paths, settings, modules and their names."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from places import ROOT
from source_tree import FILES, TESTS, attributes_of, literals, members_of, name_of, resolves, tree_of

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sorted((ROOT / ".ci").glob("*.py"))
CODE = [*FILES, *TESTS, *SCRIPTS]
SETTINGS = sorted((ROOT / "samples").rglob("*.toml"))
OTHERS = [*SETTINGS, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / ".ci" / "run"]
TEXTS = [*PAGES, *CODE, *OTHERS]
WRITTEN = {"speed.md", "table.md"}  # pages that runs write, not the project's own
FOLDERS = "ptedge|training|export|runtime|samples|tests|docs|\\.ci"
THIS = Path(__file__)


@cache
def flat(path: Path) -> str:
    """The text with line breaks, indents and comment signs taken out, so that a reference over two lines is one."""
    return re.sub(r"\s*\n[ \t]*(?:# ?)?", " ", path.read_text("utf-8"))


def headings(page: Path) -> list[tuple[int, str]]:
    """(level, text) of each heading outside fenced code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [(len(signs), title.strip()) for signs, title in re.findall(r"^(#+) (.+)$", text, re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """The anchors GitHub makes of a page's headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in headings(page)}


def sections_of_the_method() -> dict[str, set[str]]:
    """Numbers of sections in docs/method.md, each with the headings below it."""
    found: dict[str, set[str]] = {}
    number = ""
    for level, title in headings(ROOT / "docs" / "method.md"):
        if level == 2:
            number = title.partition(".")[0]
            found[number] = set()
        elif level > 2:
            found[number].add(title)
    return found


def test_resolves__modules_their_names_and_members_of_classes() -> None:
    pseudo = "ptedge.training.losses.pseudo"
    for name in ("ptedge", pseudo, f"{pseudo}.PseudoBoxes", f"{pseudo}.PseudoBoxes.moved", "ptedge.data.Dataset"):
        assert resolves(name), name
    for name in (
        "ptedge.nothing",
        f"{pseudo}.nothing",
        f"{pseudo}.PseudoBoxes.nothing",
        f"{pseudo}.PseudoBoxes.moved.x",
    ):
        assert not resolves(name), name


def test_method__every_cited_section_is_a_heading() -> None:
    sections, wrong, cited = sections_of_the_method(), [], 0
    form = r'method\.md,? sections? (\d+(?:(?:, | and )\d+)*)(?:, "([^"]+)"|, ((?:RPN|ROI)-\w+))?'
    for path in (path for path in CODE if path != THIS):
        for numbers, quoted, plain in re.findall(form, flat(path)):
            cited += 1
            every = re.findall(r"\d+", numbers)
            title = quoted or plain
            if not set(every) <= set(sections) or (title and title not in sections[every[-1]]):
                wrong.append(f"{name_of(path)}: section {numbers} {title}")
    assert cited > 20
    assert not wrong


def test_method__every_equation_is_written_for_github_and_followed_by_its_function() -> None:
    text = (ROOT / "docs" / "method.md").read_text("utf-8")
    _, *parts = re.split(r"^\$\$\n(.*?)^\$\$\n", text, flags=re.MULTILINE | re.DOTALL)
    blocks, rests = parts[::2], parts[1::2]
    assert len(blocks) > 10
    assert not [block for block in blocks if re.search(r"\\[^a-zA-Z]", block)], "GitHub drops a backslash before a sign"
    assert not [block for block, rest in zip(blocks, rests, strict=True) if "Code: `" not in rest.partition("\n## ")[0]]


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_pages__named_anywhere_exist_with_their_anchors(path: Path) -> None:
    wrong = []
    for name, anchor in re.findall(r"(?<![\w./-])((?:[\w.-]+/)*[\w-]+\.md)(?!\w)(?:#([\w-]+))?", flat(path)):
        places = [folder / name for folder in (path.parent, ROOT, ROOT / "docs")]
        page = next((place for place in places if place.is_file()), None)
        if page is None:
            wrong += [] if name in WRITTEN or path == THIS else [name]
        elif anchor and anchor not in anchors(page):
            wrong.append(f"{name}#{anchor}")
    if path.suffix == ".md":
        own = re.findall(r"\]\(#([\w-]+)\)", flat(path))
        wrong += [f"#{anchor}" for anchor in own if anchor not in anchors(path)]
    assert not wrong


@pytest.mark.parametrize("path", [path for path in TEXTS if path != THIS], ids=name_of)
def test_paths__named_anywhere_exist(path: Path) -> None:
    # not after a sign that makes it the end of another path, or a list of two words
    named = re.findall(rf"(?<![\w./~*{{-])(?:{FOLDERS})/[\w./*-]*[\w*/]", flat(path))
    if path.suffix != ".md":
        named = [name for name in named if "." in name]  # code has other words with a slash between them
    assert [name for name in named if not list(ROOT.glob(name))] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules__named_in_pages_exist(page: Path) -> None:
    known = {name_of(path) for path in CODE}
    named = re.findall(r"[\w./-]*\w\.py\b", page.read_text("utf-8"))
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in known)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names__in_pages_are_those_of_the_code(page: Path) -> None:
    named = re.findall(r"\bptedge(?:\.\w+)+(?:/\d+)?", page.read_text("utf-8"))
    assert [name for name in named if not resolves(name) and name not in literals()] == []


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_names__in_docstrings_are_those_of_the_code(path: Path) -> None:
    tree = tree_of(path)
    here = members_of(tree.body)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    inside = {attribute for node in classes for attribute in attributes_of(node)}
    wrong = []
    for name in re.findall(r":(?:func|class|meth|data|mod|attr|exc):`~?([\w.]+)`", path.read_text("utf-8")):
        first, _, rest = name.partition(".")
        if first == "ptedge":
            found = resolves(name)
        elif first in sys.stdlib_module_names:
            found = hasattr(importlib.import_module(first), rest)
        elif rest:
            node = here.get(first)
            found = node is not None and (not isinstance(node, ast.ClassDef) or rest in attributes_of(node))
        else:
            found = name in here or name in inside
        wrong += [] if found else [name]
    assert not wrong


@cache
def settings() -> dict[str, set[str]]:
    """Keys of each table in docs/config.md, which a test keeps equal to the source; "" for those of no table."""
    found: dict[str, set[str]] = {"": set()}
    table = ""
    for line in (ROOT / "docs" / "config.md").read_text("utf-8").splitlines():
        if line.startswith("#"):
            title = re.search(r"`\[(\w+)\]`", line)
            table = title[1] if title else ""
            found.setdefault(table, set())
        elif key := re.match(r"- `(\w+)[` ]", line):
            found[table].add(key[1])
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings__named_in_pages_exist(page: Path) -> None:
    tables = "|".join(table for table in settings() if table)
    text = re.sub(r"^```python\n.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)  # has a variable "model"
    named = re.findall(rf"(?<![\w./-])({tables})\.(\w+)", text)
    files = {"py", "md", "pt", "onnx", "json", "jsonl", "toml", "html"}  # model.pt is no setting
    assert [f"{t}.{key}" for t, key in named if key not in files and key not in settings()[t]] == []
