"""Versions: named after their content, whole or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_deployments import deployed, numbered_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import ArtifactError, InputError
from ptedge.runtime.deployment.place import Deployment, files_of, is_deployment, open_deployment


def test_put_version__twice_is_the_same_and_completes_what_was_left(tmp_path: Path) -> None:
    bundle = open_bundle(numbered_bundle(tmp_path / "bundle", 0))
    deployment = Deployment(tmp_path / "deployment")
    version, files = deployment.put_version(bundle)
    (tmp_path / "deployment" / "versions" / version / "manifest.json").unlink()
    assert deployment.put_version(bundle) == (version, files)
    folder = deployment.folder_of(version, files)
    assert open_bundle(folder).model_hash == bundle.model_hash
    assert list(files) == ["model.onnx", "manifest.json"]
    assert not is_deployment(deployment.path)


def test_folder_of__a_changed_or_missing_file_is_named(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 1)
    state = deployment.state()
    version = state.running[0]
    manifest = deployment.path / "versions" / version / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    with pytest.raises(ArtifactError, match=r"manifest\.json was changed since"):
        deployment.folder_of(version, state.files[version])
    manifest.unlink()
    with pytest.raises(ArtifactError, match="cannot be read"):
        deployment.folder_of(version, state.files[version])


def test_moved__asks_for_the_next_entry_alone(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    assert deployment.moved(1)
    assert not deployment.moved(2)


def test_open_deployment__says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no deployment"):
        open_deployment(tmp_path)
    assert open_deployment(deployed(tmp_path, 1).path).state().number == 1


def test_files_of__other_files_in_the_folder_do_not_travel(tmp_path: Path) -> None:
    bundle = numbered_bundle(tmp_path / "bundle", 0)
    (bundle / "notes.txt").write_text("mine")
    assert files_of(open_bundle(bundle)) == ["model.onnx", "manifest.json"]
