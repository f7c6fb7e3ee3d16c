from __future__ import annotations

from typing import Any

import pytest
from made_page import a_page_result as result

from ptedge.runtime.page.view import LiveView


def test_view__draws_only_for_who_looks_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Any] = []
    monkeypatch.setattr("ptedge.runtime.page.view.encode_jpeg", lambda image, quality: encoded.append(image) or b"x")
    view = LiveView()
    for i in range(5):
        view.write(result(i, width=1600))
    assert not encoded
    first, second = view.picture("", -1, 0), view.picture("", -1, 0)
    assert first is second and len(encoded) == 1 and encoded[0].shape == (853, 1280, 3)
    assert view.picture("", 4, 0.01) is None


def test_view__numbers_say_what_is_new() -> None:
    view = LiveView()
    keys = {"yard": "yard", "gate": "gate"}
    assert view.numbers(keys) == {"yard": -1, "gate": -1} and not view.has_newer("yard", -1)
    view.write(result(0, "yard"))
    view.write(result(1, "yard"))
    assert view.numbers(keys) == {"yard": 1, "gate": -1}
    assert view.has_newer("yard", 0) and not view.has_newer("yard", 1) and not view.ended
    view.close()
    assert view.ended
