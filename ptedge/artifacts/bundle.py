"""The bundle: what travels to the device. A folder with ``manifest.json`` and ``model.onnx``.

The manifest says everything needed to use the model and where it came from, and holds a hash of every other file. The
ONNX file carries the same manifest (without hashes) in its metadata, so a bare ``model.onnx`` works as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ptedge.artifacts.manifest import Manifest, repair_hint
from ptedge.artifacts.onnx_metadata import add_metadata, read_metadata
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import atomic_write, sha256_file, write_error, write_json

MANIFEST_NAME = "manifest.json"
MODEL_NAME = "model.onnx"
METADATA_KEY = "ptedge"


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: every file matches the manifest.

    Attributes:
        path: what was opened, folder or ``.onnx`` file.
        manifest: what it says.
        model_path: the ONNX file.
        model_hash: sha256 of the ONNX file.
    """

    path: Path
    manifest: Manifest
    model_path: Path
    model_hash: str


def is_bundle(path: Path) -> bool:
    """Whether a path looks like a bundle: a folder with ``manifest.json``, or an ``.onnx`` file."""
    return (path / MANIFEST_NAME).is_file() or (path.suffix == ".onnx" and path.is_file())


def write_bundle(folder: Path, manifest: Manifest, model: bytes) -> Bundle:
    """Write a bundle whole: into a temporary folder beside, which then takes the name.

    Args:
        folder: where it goes. A bundle there is replaced, together with engines built from it; anything else is kept.
        manifest: description; its ``files`` are filled in here.
        model: serialised ONNX model without manifest.

    Returns:
        The bundle that now stands there.

    Raises:
        OutputError: not writable, or ``folder`` is something other than a bundle.
    """
    folder = folder.resolve()  # behind a link, the target is replaced and the link stays
    if folder.exists() and not (folder / MANIFEST_NAME).is_file() and not (folder.is_dir() and _is_empty(folder)):
        raise OutputError(f"cannot write a bundle to {folder}: something else is there. Choose another --out")
    description = json.dumps(dataclasses.replace(manifest, files={}, engines=()).to_json(), ensure_ascii=False)
    model = add_metadata(model, METADATA_KEY, description)
    model_hash = hashlib.sha256(model).hexdigest()
    manifest = dataclasses.replace(manifest, files={MODEL_NAME: model_hash}, engines=())
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        with atomic_write(temporary / MODEL_NAME) as file:
            file.write(model)
        write_json(temporary / MANIFEST_NAME, manifest.to_json())
        _replace_folder(temporary, folder)
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Bundle(folder, manifest, folder / MODEL_NAME, model_hash)


def open_bundle(path: Path) -> Bundle:
    """Open a bundle folder or a bare ``.onnx`` file and check it.

    Args:
        path: folder, or ONNX file written by ``ptedge export``.

    Returns:
        The bundle. Files that the manifest lists are there and unchanged.

    Raises:
        ArtifactError: says which file is wrong and which command repairs it.
    """
    if not path.is_dir():
        return _open_file(path)
    where = path / MANIFEST_NAME
    try:
        values = json.loads(where.read_text("utf-8"))
    except OSError as error:
        raise ArtifactError(f"cannot read {where}: {error.strerror}. {repair_hint(path)}") from None
    except ValueError as error:
        raise ArtifactError(f"{where} is not valid JSON ({error}). {repair_hint(path)}") from None
    manifest = Manifest.from_json(values, str(where))
    if MODEL_NAME not in manifest.files:
        raise ArtifactError(f"{where} does not list {MODEL_NAME}. {repair_hint(path)}")
    for name, expected in manifest.files.items():
        if Path(name).name != name:
            raise ArtifactError(f"{where} lists {name!r}, which is not a file name. {repair_hint(path)}")
        if _hash(path / name, path) != expected:
            raise ArtifactError(f"{path / name} does not match the manifest: changed or cut short. {repair_hint(path)}")
    _check_same(manifest, _manifest_inside(path / MODEL_NAME), where)
    return Bundle(path, manifest, path / MODEL_NAME, manifest.files[MODEL_NAME])


def _open_file(path: Path) -> Bundle:
    model_hash = _hash(path, path.parent)  # first: it says so when the file cannot be read
    return Bundle(path, _manifest_inside(path), path, model_hash)


def _check_same(manifest: Manifest, inside: Manifest, where: Path) -> None:
    """Refuse a manifest that says something else of the model than the model itself.

    Left out: hashes of files, engines and sigma_scale (which come later), and lineage (``ptedge verify`` compares it).
    """
    outer, inner = manifest.to_json(), inside.to_json()
    for key in sorted(outer.keys() | inner.keys()):
        if key not in ("files", "engines", "sigma_scale", "lineage") and outer.get(key) != inner.get(key):
            raise ArtifactError(
                f"{where} says {key} = {outer.get(key)!r}, but {MODEL_NAME} was exported with {inner.get(key)!r}. "
                f"{repair_hint(where.parent)}"
            )


def _manifest_inside(path: Path) -> Manifest:
    try:
        text = read_metadata(path).get(METADATA_KEY)
    except ValueError as error:
        raise ArtifactError(f"{path} is not a whole ONNX file ({error}). {repair_hint(path.parent)}") from None
    if text is None:
        raise ArtifactError(f"{path} was not written by ptedge: no manifest inside. {repair_hint(path.parent)}")
    try:
        values = json.loads(text)
    except ValueError:
        raise ArtifactError(f"the manifest inside {path} is not valid JSON. {repair_hint(path.parent)}") from None
    return Manifest.from_json(values, str(path))


def _hash(path: Path, bundle: Path) -> str:
    try:
        return sha256_file(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. {repair_hint(bundle)}") from None


def _is_empty(folder: Path) -> bool:
    return next(folder.iterdir(), None) is None


def _replace_folder(new: Path, folder: Path) -> None:
    """Give ``new`` the name ``folder``. No folder can be renamed onto a full one, so the old one steps aside first."""
    if not folder.exists():
        os.replace(new, folder)
        return
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    os.replace(folder, old)
    try:
        os.replace(new, folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
