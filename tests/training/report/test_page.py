from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import Browser, find_browser
from made_findings import made_facts, made_findings

from ptedge.training.report.gather import gather
from ptedge.training.report.page import Findings, build_page

HOSTILE = '<img src=x onerror="alert(1)">&\'"'
needs_browser = pytest.mark.skipif(find_browser() is None, reason="no chromium here")
# of the colours that text has, the least contrast with its ground, by the formula of WCAG 2
CONTRAST = """
(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  let least = 99;
  const texts = 'p, a, h1, h2, h3, b, span, td, th, dt, dd, caption, figcaption, code, text';
  for (const e of document.querySelectorAll(texts)) {
    if (!e.textContent.trim()) continue;
    const style = getComputedStyle(e), ink = e.namespaceURI.endsWith('svg') ? style.fill : style.color;
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    least = Math.min(least, (a + 0.05) / (b + 0.05));
  }
  return least;
})()
"""


class Seen(HTMLParser):
    """Tags and attributes of a page, and whether it is well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path: Path) -> str:
    facts = made_facts(tmp_path / "run")
    return build_page(facts, made_findings([f"{i}.jpg" for i in range(4)]))


def test_build_page__needs_nothing_from_elsewhere_and_runs_nothing(page: str) -> None:
    seen = Seen(page)
    names = {tag for tag, _ in seen.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "form", "base"}
    for _, attributes in seen.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/jpeg;base64,"))
    assert "url(" not in page and "@import" not in page and "http:" not in page and "https:" not in page


def test_build_page__every_picture_has_a_text_and_every_link_a_target(page: str) -> None:
    seen = Seen(page)
    pictures = [attributes for tag, attributes in seen.tags if tag == "img"]
    assert len(pictures) == 2 * 4 + 4  # each frame twice, and the doubtful ones
    assert all(attributes["alt"] for attributes in pictures)
    assert all(attributes.get("aria-label") for tag, attributes in seen.tags if tag == "svg")
    targets = {attributes.get("id") for _, attributes in seen.tags}
    assert {str(a["href"])[1:] for tag, a in seen.tags if tag == "a"} <= targets
    assert [attributes.get("lang") for tag, attributes in seen.tags if tag == "html"] == ["en"]


def test_build_page__names_of_files_and_classes_are_text(tmp_path: Path) -> None:
    facts = made_facts(tmp_path / "<b>run", (HOSTILE,))
    (facts.run / "config.toml").write_text(f"x = '{HOSTILE}'")
    facts.config = f"x = '{HOSTILE}'"
    facts.notes.append(HOSTILE)
    facts.summary = {**facts.summary, "estimate": {HOSTILE: HOSTILE}}
    findings = made_findings([f"{HOSTILE}.jpg"], (HOSTILE,))
    findings.scores = {HOSTILE: findings.scores["adapted model"]}
    findings.notes.append((HOSTILE, HOSTILE))
    page = build_page(facts, findings)
    seen = Seen(page)
    assert not [attributes for _, attributes in seen.tags if "onerror" in attributes]
    assert "<b>run" not in page and HOSTILE not in page


def test_build_page__says_what_is_missing_and_how_to_make_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "summary.json").write_text("{}")
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    page = build_page(
        gather(run, None, None, None), Findings(notes=[("No frames.", "ptedge report RUN --frames FRAMES")])
    )
    commands = re.findall(r'class="missing">[^<]+<code>(ptedge [a-z]+)', page)
    assert set(commands) >= {"ptedge report", "ptedge benchmark", "ptedge train", "ptedge adapt"}
    Seen(page)


def test_build_page__estimates_and_benchmarks_are_shown_where_they_are(tmp_path: Path) -> None:
    facts = made_facts(tmp_path / "run")
    facts.summary = {**facts.summary, "estimate": {"AP50": 0.625}, "sigma_scale": [1.5, 1.0, 1.0, 2.0]}
    facts.manifest = {"side_offset": (0.0, 0.0, 0.0, 0.0), "calibrated": None}  # nothing to show
    times = {"end_to_end": {"median": 12.34, "p95": 20.0}, "infer": {"median": 10.0}}
    run = {
        "name": "bundle",
        "backend": "cpu",
        "precision": "fp32",
        "latency_ms": times,
        "throughput": {"images_per_second": 80.0},
    }
    facts.benchmarks.append((Path("benchmark.json"), {"runs": [run], "environment": {"cpu": "a processor"}}))
    page = build_page(facts, Findings())
    assert "<td>0.625</td>" in page and "<td>1.5, 1, 1, 2</td>" in page and "side offset" not in page
    assert "bundle, cpu, fp32" in page
    assert "12.3 ms" in page and "<td>20.0</td><td>80.0</td>" in page and "a processor" in page


def test_build_page__says_what_the_run_was_made_of(tmp_path: Path) -> None:
    facts = made_facts(tmp_path / "run")
    assert "Adapted to 5 unlabelled frames, with 6 labelled source images. Classes: car." in build_page(
        facts, Findings()
    )
    facts.summary = {**facts.summary, "kind": "few_labels", "source_images": 0, "labelled_frames": 10}
    text = "Adapted to 5 unlabelled frames, without source images, with 10 labelled target frames."
    assert text in build_page(facts, Findings())
    facts.summary = {"command": "train", "images": 580, "classes": ["car"]}
    assert "Trained on 580 labelled images. Classes: car." in build_page(facts, Findings())


@needs_browser
def test_page__in_a_browser(page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page)
    with Browser(tmp_path / "profile") as browser:
        messages = browser.collect("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        grounds, pictures = [], []
        for width, dark in ((1280, False), (390, False), (390, True), (1280, True)):
            browser.open(file.as_uri(), width=width, dark=dark)
            browser.wait("document.readyState === 'complete'")
            browser.wait(
                "[...document.images].every(i => { i.loading = 'eager'; return i.complete && i.naturalWidth > 0 })"
            )
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            assert browser.evaluate(CONTRAST) >= 4.5
            grounds.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            # side by side where there is room, one below the other on a phone
            pictures.append(
                browser.evaluate(
                    "new Set([...document.querySelectorAll('.pair img')].slice(0, 2).map(i => i.offsetTop)).size"
                )
            )
        assert grounds[0] == grounds[1] != grounds[2] == grounds[3]
        assert pictures == [1, 2, 2, 1]
        assert json.dumps(messages) == "[]"
