"""A registry of containers on this machine, Debian's docker-registry, which ends with the tests."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.buckets import free_port, serving


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[str]:
    """A registry without anything in it.

    Args:
        folder: for its files.

    Yields:
        Its host and port.
    """
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed (apt-get install docker-registry)")
    port = free_port()
    folder.mkdir(parents=True)
    about = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "files")}, "delete": {"enabled": True}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (folder / "config.yml").write_text(json.dumps(about))  # JSON is YAML
    with serving([program, "serve", str(folder / "config.yml")], port, folder / "log"):
        yield f"127.0.0.1:{port}"
