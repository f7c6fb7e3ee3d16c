"""The page: parts under headings, key figures above, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from ptedge import __version__

from .gather import Facts, table_of
from .markup import Markup, element, join, number
from .pictures import SURE, View, least_sure, most_changed
from .scores import Scores, coverage_chart, score_table, side_drawing, side_table, sigma_sentence
from .sections import (
    anchor_part,
    duration,
    estimate_part,
    lineage_part,
    loss_charts,
    measured_on,
    missing,
    monitor_charts,
    settings_part,
    speed_part,
    training_speed,
)

SHOWN, UNSURE = 6, 4  # frames of each kind
# no script runs and nothing is fetched, even if a name found its way into the markup
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


@dataclass
class Findings:
    """What models answered, beside what was read.

    Attributes:
        titles: of the models asked, the newer last.
        views: frames with their answers.
        scores: by title, as ``ptedge eval --json`` prints them.
        frames: what the views are of, in words.
        notes: what could not be done, each a sentence and a command.
    """

    titles: tuple[str, ...] = ()
    views: Sequence[View] = ()
    scores: Mapping[str, Scores] = field(default_factory=dict)
    frames: str = ""
    notes: list[tuple[str, str]] = field(default_factory=list)


def build_page(facts: Facts, findings: Findings) -> str:
    """The whole document.

    Args:
        facts: read from files.
        findings: what models answered.
    """
    sections = [
        ("frames", "The same frames, before and after", _frames(findings)),
        ("labels", "What labels say", _labels(facts, findings)),
        ("unlabelled", "What is known without labels", _unlabelled(facts)),
        ("losses", "Losses", _losses(facts)),
        ("anchors", "Anchors", _anchors(facts)),
        ("unsure", "Frames the model is least sure of", _unsure(findings)),
        ("speed", "Speed", _speed(facts)),
        ("lineage", "Where it came from", lineage_part(facts)),
        ("settings", "Settings", settings_part(facts) or missing("The run has no config.toml.", "ptedge adapt --help")),
    ]
    name = facts.run.resolve().name
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{name}: ptedge report"),
        element("style", Markup(resources.files(__package__).joinpath("page.css").read_text("utf-8"))),
    )
    links = [element("a", title, href=f"#{anchor}") for anchor, title, _ in sections]
    body = element(
        "body",
        element(
            "header",
            element("h1", name),
            _summary(facts),
            element("nav", *links, aria_label="Contents"),
            _tiles(facts, findings),
        ),
        element(
            "main", *(element("section", element("h2", title), part, id=anchor) for anchor, title, part in sections)
        ),
        element(
            "footer",
            *[element("p", note) for note in facts.notes],
            f"Written by ptedge {__version__} from {facts.run}.",
        ),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def _summary(facts: Facts) -> Markup:
    counts = facts.summary
    if facts.adapted:
        parts = ["Adapted"] + (
            [f"to {number(counts['target_frames'])} unlabelled frames"] if counts.get("target_frames") else []
        )
        source = counts.get("source_images")
        parts.append(f"with {number(source)} labelled source images" if source else "without source images")
        parts += [f"with {number(few)} labelled target frames"] if (few := counts.get("labelled_frames")) else []
    else:
        parts = ["Trained"] + ([f"on {number(counts['images'])} labelled images"] if counts.get("images") else [])
    text = " ".join(parts[:2]) + "".join(f", {part}" for part in parts[2:])
    text += f". Classes: {', '.join(facts.class_names) or 'unknown'}."
    if facts.summary.get("interrupted"):
        text += " The run was interrupted before its last step."
    if facts.summary.get("stopped_by_guard"):
        text += " A guard stopped the run."
    chosen, last = table_of(facts.summary, "chosen").get("step"), table_of(facts.summary, "last").get("step")
    if chosen is not None and chosen != last:
        text += f" The model of step {chosen} was chosen, not that of the last step, {last}."
    return element("p", text)


def _tiles(facts: Facts, findings: Findings) -> Markup | None:
    tiles: list[tuple[str, str]] = []
    for title, values in findings.scores.items():
        tiles.append((_share(values.get("AP50")), f"AP50, {title}, on {number(values.get('images'))} labelled frames"))
    if findings.views and len(findings.titles) == 2:
        counts = [sum(len(view.found[i]) for view in findings.views) / len(findings.views) for i in (0, 1)]
        tiles.append((f"{counts[0]:.1f} → {counts[1]:.1f}", f"boxes a frame from a score of {SURE}, before → after"))
    for _, report in facts.benchmarks[:1]:
        for run in (report.get("runs") or [])[:1]:
            value = table_of(table_of(run, "latency_ms"), "end_to_end").get("median")
            tiles.append((number(value, 1, "ms"), f"an image, {measured_on(run)}"))
    if isinstance(seconds := facts.summary.get("seconds"), (int, float)):
        tiles.append((duration(seconds), f"for {number(facts.summary.get('steps'))} steps"))
    items = [element("li", element("b", value), element("span", text)) for value, text in tiles]
    return element("ul", *items, class_="tiles") if items else None


def _frames(findings: Findings) -> Markup:
    notes = [missing(*note) for note in findings.notes]
    if not findings.views:
        return join(notes)
    shown = most_changed(findings.views, SHOWN)
    text = f"{len(findings.views)} frames spread evenly over {findings.frames} were looked at"
    if len(findings.titles) == 2:
        text += (
            f"; these are the {len(shown)} on which the two models differ most: they show more change than the others"
        )
    text += f". Boxes have a score of {SURE} or more. The band of a side fades out at two sigma: wide means doubtful."
    return join(
        [*notes, element("p", text), element("div", *(_pair(v, findings.titles) for v in shown), class_="pairs")]
    )


def _pair(view: View, titles: Sequence[str]) -> Markup:
    tones = ("before", "after")[-len(titles) :]
    figures = [_figure(view, i, title, tones[i]) for i, title in enumerate(titles)]
    return element("article", element("h3", _short(view.name)), *figures, class_="pair")


def _figure(view: View, i: int, title: str, tone: str) -> Markup:
    found = view.found[i]
    boxes = f"{len(found)} box{'' if len(found) == 1 else 'es'}"
    scores = ", ".join(f"{score:.2f}" for score in found.scores[:8])
    alt = f"Frame {_short(view.name)} with what {title} found: {boxes}{f', scores {scores}' if scores else ''}"
    image = element("img", src=view.pictures[i], alt=alt, loading="lazy")
    caption = element("figcaption", element("b", title, class_=tone), f": {boxes}")
    return element("figure", image, caption)


def _labels(facts: Facts, findings: Findings) -> Markup:
    scores = findings.scores
    if not scores:
        command = f"ptedge report {facts.run} --val DATA"
        return missing(
            "No labelled frames were given, so nothing is known of precision and of sigma's truth. With some:", command
        )
    newest = list(scores)[-1]
    tones = {title: "after" if title == newest and facts.adapted else "before" for title in scores}
    drawings = [coverage_chart({title: (tones[title], values) for title, values in scores.items()})]
    drawings += [side_drawing(title, tones[title], values) for title, values in scores.items()]
    notes = [element("p", sigma_sentence(title, values)) for title, values in scores.items()]
    charts = [drawing for drawing in drawings if drawing is not None]
    explained = element(
        "p",
        "Offset: where sides lie in the median, above 0 too far right or down. Spread: robust deviation of errors "
        "from it. Sigma: what the model says that spread is.",
        class_="quiet",
    )
    sides = side_table(scores)
    return join(
        [score_table(scores), *notes, element("div", *charts, class_="charts"), sides, explained if sides else None]
    )


def _unlabelled(facts: Facts) -> Markup:
    parts: list[Markup | None] = [estimate_part(facts)]
    charts = monitor_charts(facts.curves) if facts.curves is not None else []
    if charts:
        text = "Measured on the target without a label. Falling entropy means a surer teacher, not a better one."
        parts += [element("p", text, class_="quiet"), element("div", *charts, class_="charts")]
    if not any(parts):
        return missing("Nothing was logged.", "ptedge adapt CHECKPOINT --target FRAMES --source-free --out RUN")
    return join(parts)


def _losses(facts: Facts) -> Markup:
    charts = loss_charts(facts.curves) if facts.curves is not None else []
    if not charts:
        return missing("The run has no metrics.jsonl with losses.", "ptedge train DATA --out RUN")
    return element("div", *charts, class_="charts")


def _anchors(facts: Facts) -> Markup:
    part = anchor_part(facts)
    if part is None:
        return missing(
            "Anchors of start and end are not both known; name the model the run began with.",
            f"ptedge report {facts.run} --before CHECKPOINT",
        )
    return part


def _unsure(findings: Findings) -> Markup:
    views = least_sure(findings.views, UNSURE)
    if not views:
        return missing(
            "No frames were looked at, or the model has no doubtful box on them.", "ptedge report RUN --frames FRAMES"
        )
    text = "Ranked by doubt: a box of score 0.5 counts 1, of 0.3 0.84, of 0.9 0.36. Label these first."
    last = len(views[0].found) - 1
    figures = []
    for view in views:
        alt = f"Frame {_short(view.name)}: {len(view.found[last])} boxes, doubt {view.doubt:.1f}"
        image = element("img", src=view.pictures[last], alt=alt, loading="lazy")
        figures.append(element("figure", image, element("figcaption", f"{_short(view.name)}: doubt {view.doubt:.1f}")))
    return join([element("p", text), element("div", *figures, class_="one")])


def _speed(facts: Facts) -> Markup:
    spent = training_speed(facts)
    measured = speed_part(facts)
    if measured is None:
        bundle = facts.bundle or "BUNDLE"
        measured = missing("Latency was not measured.", f"ptedge benchmark {bundle} --out {bundle}/benchmark.json")
    return join([element("p", spent) if spent else None, measured])


def _share(value: Any) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, (int, float)) else "-"


def _short(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
