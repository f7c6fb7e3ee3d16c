"""Bundles in a registry of containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from keys import key_pair
from servers.registries import registry
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.trust import Trust
from ptedge.cli import cli
from ptedge.errors import ArtifactError, StoreError
from ptedge.runtime.deployment.place import files_of
from ptedge.runtime.transfer.oci import parse_oci_address, pull_oci, push_oci


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the registry keeps its files."""
    return tmp_path_factory.mktemp("registry") / "files"


@pytest.fixture(scope="module")
def host(stored: Path) -> Iterator[str]:
    pytest.importorskip("oras", reason="oras is not installed (pip install oras)")
    with registry(stored) as found:
        yield found


def test_pull_oci__byte_for_byte_what_was_pushed(host: str, tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "odd: name").path
    address = f"oci://{host}/models/car:v1"
    done = CliRunner().invoke(cli, ["bundle", "push", str(bundle), address, "--json"])
    assert done.exit_code == 0, done.exception
    pulled = CliRunner().invoke(cli, ["bundle", "pull", address, str(tmp_path / "out"), "--json"])
    assert pulled.exit_code == 0, pulled.exception
    assert json.loads(pulled.stdout)["version"] == json.loads(done.stdout)["version"]
    names = files_of(open_bundle(bundle))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (bundle / name).read_bytes()


def test_push_oci__a_tag_moves(host: str, tmp_path: Path) -> None:
    address = f"oci://{host}/models/car:latest"
    for name in ("cat", "dog"):
        moved = push_oci(tiny_bundle(tmp_path / name, class_names=(name,)).path, address)
        assert pull_oci(address, tmp_path / f"{name}-out") == moved


def test_pull_oci__what_is_damaged_foreign_or_unsigned_leaves_nothing(host: str, stored: Path, tmp_path: Path) -> None:
    import oras.client

    address = f"oci://{host}/models/other:v1"
    (tmp_path / "notes.txt").write_text("mine")
    client = oras.client.OrasClient(insecure=True)
    client.push(
        f"{host}/models/other:v1", files=[str(tmp_path / "notes.txt")], disable_path_validation=True, quiet=True
    )
    with pytest.raises(ArtifactError, match="something other than a bundle"):
        pull_oci(address, tmp_path / "out")
    push_oci(tiny_bundle(tmp_path / "bundle").path, address)
    with pytest.raises(ArtifactError, match="nobody vouches"):
        pull_oci(address, tmp_path / "out", Trust.read([key_pair(tmp_path)[1]]))
    contents = {path: path.read_bytes() for path in stored.rglob("data") if path.stat().st_size > 500}
    damaged = {
        path: content for path, content in contents.items() if b"onnx" in content.lower() or b"class_names" in content
    }
    assert damaged
    for path, content in damaged.items():
        path.write_bytes(content[:-5] + b"#" + content[-4:])
    with pytest.raises((ArtifactError, StoreError)):
        pull_oci(address, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_oci__no_registry_and_no_tag_are_told(tmp_path: Path) -> None:
    pytest.importorskip("oras", reason="oras is not installed (pip install oras)")
    bundle = tiny_bundle(tmp_path / "bundle").path
    with pytest.raises(StoreError, match=r"cannot push to oci://127\.0\.0\.1:9/models/car:v1"):
        push_oci(bundle, "oci://127.0.0.1:9/models/car:v1")
    for text in ("oci://host", "oci://host/car", "oci://user:word@host/car:v1", "oci://host:a/car:v1"):
        with pytest.raises(StoreError, match="is no address in a registry"):
            parse_oci_address(text)


def test_parse_oci_address__unencrypted_on_this_machine_alone() -> None:
    assert parse_oci_address("oci://127.0.0.1:5000/models/car:v1").encrypted is False
    found = parse_oci_address("oci://registry.example/models/car@sha256:ab")
    assert (found.target, found.encrypted) == ("registry.example/models/car@sha256:ab", True)


def test_bundle__options_of_buckets_are_not_for_registries(tmp_path: Path) -> None:
    words = ["bundle", "pull", "oci://host/car:v1", str(tmp_path / "out"), "--version", "ab"]
    assert CliRunner().invoke(cli, words).exit_code == 2
