"""Write docs/config.md from the configuration classes: their fields, defaults and the Attributes of their docstrings.

usage: config_docs.py [--check]        with --check: only say whether the file is up to date
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

from ptedge.detector.config import BACKBONES
from ptedge.loop.settings import Deploy, Site
from ptedge.training.config import AdaptConfig, TrainConfig
from ptedge.training.recipes.recipe import FASTEST_EMA, SCHEDULES, SLOWEST_EMA

TARGET = Path(__file__).resolve().parents[1] / "docs" / "config.md"
HEAD = """# Configuration

Written by `.ci/config_docs.py` from the source; a test keeps it equal.

`ptedge train` and `ptedge adapt` read a TOML file (`--config run.toml`) and `--set key=value`, which wins. Tables nest:
`--set model.nms=0.6` is the key `nms` of `[model]`. An unknown key, a wrong type or a value out of range is an error
that names the key and what is allowed. Every run writes its complete settings to `config.toml` in its folder. What is
*chosen* where it is not set hangs on the data and the machine ([training.md](training.md#what-is-chosen-for-you)).
`ptedge loop` reads a file of its own, SITE.toml ([loop.md](loop.md)).
"""
NEEDED = "needed"  # has no default


def attributes(cls: type) -> dict[str, str]:
    """The text of each name under ``Attributes:`` in a class's docstring."""
    section = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")[2]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        start = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if line and not line.startswith(" "):
            break  # the next section
        if start:
            names = start[1].split(", ")
            found.update(dict.fromkeys(names, start[2]))
        elif names and line.strip():
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
    return found


def toml(value: Any) -> str:
    """A default as one writes it in TOML."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def entry(text: str) -> str:
    """An entry of a list in lines of 120 characters."""
    return textwrap.fill(
        text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def chosen(command: str) -> dict[str, str]:
    """What is chosen where it is not set, in words, by key; it takes the place of a default."""
    if command == "loop":
        return dict.fromkeys(("checkpoint", "frames", "deploy.canary"), NEEDED)
    rules = {"optim.warmup": f"the steps / {SCHEDULES[command].warm_part}"}
    if command == "train":
        rules["optim.steps"] = SCHEDULES["train"].said()
        rules["model.anchor_sizes"] = "k-means of the boxes at the input size"
    else:
        rules["optim.steps"] = f"{SCHEDULES['adapt'].said()}; source-free {SCHEDULES['source_free'].said()}"
        rules["teacher.ema"] = f"1 - 2 / steps, from {FASTEST_EMA} to {SLOWEST_EMA}"
    return rules


def tables(config: Any, rules: dict[str, str], name: str = "") -> typing.Iterator[str]:
    """Markdown of a configuration with its defaults and of the tables in it."""
    cls = type(config)
    if name:
        summary = inspect.cleandoc(cls.__doc__ or "").splitlines()[0].replace("``", "`")
        yield f"\n### `[{name}]`\n\n{summary}\n"
    texts = attributes(cls)
    hints = typing.get_type_hints(cls)
    inner = []
    rows = []
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(hints[field.name]):
            inner.append((getattr(config, field.name), f"{name}.{field.name}" if name else field.name))
            continue
        rule = rules.get(f"{name}.{field.name}".lstrip("."))
        value = f"`{field.name} = {toml(getattr(config, field.name))}`"
        known = rule if rule == NEEDED else f"chosen: {rule}"
        shown = f"`{field.name}` ({known})" if rule else value
        text = texts[field.name].replace("``", "`")
        text = text.replace("`BACKBONES`", ", ".join(f"`{name}`" for name in BACKBONES)).replace("`False`", "`false`")
        text = re.sub(r":[a-z]+:`~?([^`]*)`", r"`\1`", text)  # cross references of docstrings
        rows.append(entry(f"{shown}: {text}"))
    if rows:
        yield "\n" + "\n".join(rows) + "\n"
    for table, path in inner:
        yield from tables(table, rules, path)


def document() -> str:
    """The whole page."""
    parts = [HEAD]
    for command, cls in (("train", TrainConfig), ("adapt", AdaptConfig)):
        parts += [f"\n## `ptedge {command}`\n", *tables(cls(), chosen(command))]
    site = Site("", ("",), Deploy(""))
    parts += ["\n## `ptedge loop`\n", *tables(site, chosen("loop"))]
    return "".join(parts)


def main() -> None:
    """Write the page, or compare."""
    text = document()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, "utf-8")
    elif not TARGET.is_file() or TARGET.read_text("utf-8") != text:
        sys.exit("docs/config.md is not what the source says. Run: .venv/bin/python .ci/config_docs.py")


if __name__ == "__main__":
    main()
