"""From the names in the annotations to labels: one map for every format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ptedge.errors import ClassMismatchError, InputError

# label of an ignore region that stands for every class (KITTI's DontCare)
ANY_CLASS = -1


@dataclass(frozen=True)
class ClassRules:
    """What a TOML description says about classes.

    Attributes:
        classes: names in label order; ``None`` takes those of the annotations.
        class_map: name in the annotations -> our name; a name not in it keeps itself.
        ignore: names (theirs or ours) whose boxes become ignore regions.
    """

    classes: tuple[str, ...] | None = None
    class_map: Mapping[str, str] = field(default_factory=dict)
    ignore: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ClassTable:
    """Answers, for a name in the annotations, which label it has.

    Attributes:
        names: class names by label.
        rules: as given.
    """

    names: tuple[str, ...]
    rules: ClassRules

    def label(self, name: str) -> tuple[int, bool] | None:
        """Label of a name.

        Returns:
            (label, whether to ignore), or ``None`` for a class that is not listed. The label of an ignored name that is
            no class is :data:`ANY_CLASS`.
        """
        ours = self.rules.class_map.get(name, name)
        ignored = name in self.rules.ignore or ours in self.rules.ignore
        if ours in self.names:
            return self.names.index(ours), ignored
        return (ANY_CLASS, True) if ignored else None


def class_table(found: Iterable[str], rules: ClassRules, where: str) -> ClassTable:
    """Fix the order of the classes.

    Args:
        found: names as the annotations declare them (in their order), or as they occur (sorted).
        rules: what the description says.
        where: file or folder, for messages.

    Raises:
        InputError: no class is left, or none of the listed ones can occur.
    """
    found = list(dict.fromkeys(found))
    names = rules.classes
    if names is None:
        mapped = (rules.class_map.get(name, name) for name in found if name not in rules.ignore)
        names = tuple(name for name in dict.fromkeys(mapped) if name not in rules.ignore)
        if not names:
            raise InputError(f"{where} names no class. Its annotations hold: {_some(found)}")
    elif found and not any(rules.class_map.get(name, name) in names for name in found):
        raise InputError(
            f"{where}: none of the classes {list(names)} is in the annotations, which hold: {_some(found)}. "
            "Connect them with class_map"
        )
    return ClassTable(names, rules)


def label_order(names: Sequence[str], wanted: Sequence[str], where: str, declared: bool) -> tuple[int, ...]:
    """Where each class of a data set stands in another class list.

    Args:
        names: classes of the data set.
        wanted: classes of the checkpoint or of the other data set.
        where: the data set's path, for messages.
        declared: the format lists its classes, so both lists must hold the same names; otherwise (names were collected
            from the boxes) classes without a box may be absent.

    Returns:
        For each label of the data set, its label in ``wanted``.

    Raises:
        ClassMismatchError: the names differ.
    """
    if (set(names) != set(wanted)) if declared else not set(names) <= set(wanted):
        raise ClassMismatchError(
            where,
            names,
            "the model or the other data set",
            wanted,
            "Write a TOML description with classes = ["
            + ", ".join(f'"{name}"' for name in wanted)
            + "] and a table class_map (name in the annotations = name of the class), and give that file instead",
        )
    return tuple(wanted.index(name) for name in names)


def _some(names: Sequence[str], most: int = 12) -> str:
    text = ", ".join(names[:most]) or "nothing"
    return text if len(names) <= most else f"{text} and {len(names) - most} more"
