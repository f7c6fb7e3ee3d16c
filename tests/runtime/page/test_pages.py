from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from made_page import MODEL, made_counters

from ptedge.runtime.page.pages import Pages
from ptedge.runtime.page.request import Request
from ptedge.runtime.page.status import RunStatus
from ptedge.runtime.page.view import LiveView

TOKEN = "0123456789abcdef"


def pages(token: str | None) -> Pages:
    status = RunStatus(made_counters(), MODEL, True)
    return Pages(status, LiveView(), {"yard": ""}, token, b"the page", ThreadPoolExecutor(1))


def asked(path: str = "/", host: str = "localhost", **headers: str) -> Request:
    return Request("GET", path, {}, headers, host, True)


@pytest.mark.parametrize(
    ("offered", "allowed"),
    [(TOKEN, True), (TOKEN[:-1], False), (TOKEN + "0", False), ("", False), ("\u00fc", False), ("\ud800", False)],
)
def test_allowed__with_a_token_nothing_else_counts(offered: str, allowed: bool) -> None:
    request = Request("GET", "/", {"token": [offered]}, {}, "device.lan", True)
    assert pages(TOKEN).allowed(request) is allowed
    assert not pages(TOKEN).allowed(asked())


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("evil.example", False), ("192.168.1.2", False)],
)
def test_allowed__without_a_token_only_names_of_this_machine(host: str, allowed: bool) -> None:
    assert pages(None).allowed(asked(host=host)) is allowed


@pytest.mark.parametrize(
    "path", ["/..", "//", "/status.json/", "//status.json", "/%73tatus.json", "/STATUS.JSON", "/;"]
)
def test_answer__names_are_exact(path: str) -> None:
    assert asyncio.run(pages(None).answer(asked(path))).code == 404
