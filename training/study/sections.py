"""What stands under the table of a study: AP50 by class, what the data hold, and what others published."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .described import shown_range
from .plan import Study
from .result import Result


def median_and_range(values: Sequence[float], digits: int = 1) -> str:
    """``88.5 (87.0 to 89.7)``; one value stands alone; none is a dash."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def by_class(study: Study, results: Sequence[Result]) -> str:
    """AP50 of model.pt class by class; nothing where there is one class."""
    names = list(dict.fromkeys(name for result in results for name in result.per_class))
    if len(names) < 2:
        return ""
    body = []
    for row in study.row:
        own = [result.per_class for result in results if result.variant == row.name and result.per_class]
        if own:
            cells = ([100 * scores[name] for scores in own if name in scores] for name in names)
            body.append([row.name, *(median_and_range(values) for values in cells)])
    return "## AP50 by class, model.pt\n\n" + markdown(["row", *names], body)


def data_counts(study: Study) -> str:
    """What the described data hold beside what they should; nothing where no count is known."""
    if not study.counted:
        return ""
    body = []
    for one in study.counted:
        official = one.official
        told_by = official.told_by if official is not None else ""
        images = f"{official.images:,}" if official is not None else ""
        body.append([one.part, "images", f"{one.images:,}", images, told_by])
        for name, count in one.boxes.items():
            limits = official.boxes.get(name) if official is not None else None
            body.append([one.part, f"boxes of {name}", f"{count:,}", shown_range(*limits) if limits else "", told_by])
    off = [f"{one.part} has {', '.join(one.off)}" for one in study.counted if one.off]
    note = "All counts are the official ones, where these are known."
    if off:
        note = f"**These are not the benchmark's data**, so no number above stands for it: {'; '.join(off)}."
    return f"## Data\n\n{note}\n\n" + markdown(["part", "of", "here", "official", "told by"], body)


def published(study: Study) -> str:
    """Numbers of others, with the conditions they stand on; nothing where the study names none."""
    if not study.published:
        return ""
    note = "AP50 as others published it, per cent. Nothing in this table was measured here, and the conditions differ."
    head = ["method", "setting", "AP50", "detector", "convention", "told by"]
    body = [
        [one.method, one.setting, f"{one.ap50:.1f}", one.detector, one.convention, one.told_by]
        for one in study.published
    ]
    return f"## Published by others\n\n{note}\n\n" + markdown(head, body)
