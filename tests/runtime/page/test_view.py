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
