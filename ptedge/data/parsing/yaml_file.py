"""YAML as a person writes it: every scalar stays the text that is there, and nothing can grow or nest without end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from ptedge.data.parsing.documents import read_text
from ptedge.errors import InputError

MOST_CHARACTERS = (
    4 << 20
)  # long lists of images belong into a text file; a parser in Python takes seconds for this much
MOST_NESTING = 20
# an alias is a second use of an anchor; merged into one another a few dozen of them make billions of entries
MOST_ALIASES = 16


class _PlainLoader(yaml.SafeLoader):
    """A safe loader without types: a class called ``no``, ``1e3`` or ``12:30`` keeps its name."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nesting = 0
        self._aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """As the base class, with an end to nesting and to aliases."""
        if self.check_event(yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise yaml.YAMLError(f"more than {MOST_ALIASES} aliases (*name)")
        self._nesting += 1
        if self._nesting > MOST_NESTING:
            raise yaml.YAMLError(f"nested deeper than {MOST_NESTING} levels")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._nesting -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """As the base class, but a key given twice is a fault: of two lists of names one would be lost."""
        own = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice = [key for key, count in own.items() if count > 1]
        if twice:
            raise yaml.YAMLError(f"the key {twice[0]!r} is there twice")
        return super().construct_mapping(node, deep=deep)


# null and merge keys (<<) keep their meaning; numbers, booleans and dates are text
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith((":null", ":merge"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# a tag (!!int, !!python/object) is refused, not followed
_PlainLoader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.endswith((":null", ":str", ":seq", ":map"))
}


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a map.

    Returns:
        Its keys and values: text, ``None``, lists and dicts of these; numbers stay text.

    Raises:
        InputError: unreadable, no YAML, a key twice, a tag, or nested or repeated without measure.
    """
    text = read_text(path)
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{path} is larger than {MOST_CHARACTERS >> 20} MB. Put long lists of images into a .txt file")
    loader = None
    try:
        loader = _PlainLoader(text)
        content = loader.get_single_data()
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split()) or "nested too deep"
        raise InputError(f"{path} is not valid YAML: {reason[:400]}") from None
    finally:
        if loader is not None:
            loader.dispose()
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(f"{path} is no data.yaml: it holds a {type(content).__name__}, not keys and values")
    return {str(key): value for key, value in content.items()}
