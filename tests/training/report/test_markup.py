from __future__ import annotations

from ptedge.training.report.markup import Markup, element, join, number, table

HOSTILE = "<script>alert(1)</script>&\"'"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#x27;"


def test_element__escapes_text_and_attributes_but_not_markup() -> None:
    inner = element("b", HOSTILE)
    assert element("p", inner, HOSTILE, title=HOSTILE) == f'<p title="{ESCAPED}"><b>{ESCAPED}</b>{ESCAPED}</p>'
    assert isinstance(inner, Markup)


def test_element__names_void_tags_and_absent_values() -> None:
    assert element("img", src="x", alt=None) == '<img src="x">'
    assert element("line", x1=1.5, x2=2) == '<line x1="1.5" x2="2"/>'
    assert element("p", None, 3, class_="a", aria_label="b") == '<p class="a" aria-label="b">3</p>'


def test_join__text_put_together_is_text_again() -> None:
    assert join([Markup("<b>") + "<i>"]) == "&lt;b&gt;&lt;i&gt;"  # a sum is no longer known to be safe


def test_table__escapes_cells_and_names_rows() -> None:
    made = table(("a", HOSTILE), [(HOSTILE, "1")], "what it shows")
    assert "<script>" not in made
    assert f'<th scope="row">{ESCAPED}</th><td>1</td>' in made
    assert "<caption>what it shows</caption>" in made


def test_number__for_people() -> None:
    assert [number(v) for v in (None, True, "x", 12345, 0.12349)] == ["-", "-", "-", "12,345", "0.123"]
    assert number(7.25, 1, "ms") == "7.2 ms"
