from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_site import SITE, in_process, made_site

from ptedge.loop.settings import Place


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Place]:
    """Makes a site whose commands run in this process; its argument is added to SITE.toml, table by table."""
    monkeypatch.setattr("ptedge.loop.work.run_command", in_process)

    def make(more: str = "") -> Place:
        return made_site(tmp_path, SITE + more)

    return make
