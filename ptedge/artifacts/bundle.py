"""The bundle: what travels to the device. A folder with ``manifest.json`` and ``model.onnx``.

A model of two graphs has ``second_stage.onnx`` beside them, whose hash stands in the manifest that ``model.onnx``
carries: the hash of that file is the hash of the model.

The manifest says everything needed to use the model and where it came from, and holds a hash of every other file. The
ONNX file carries the same manifest (without hashes) in its metadata, so a bare ``model.onnx`` works as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.artifacts.manifest import Manifest, repair_hint
from ptedge.artifacts.onnx_metadata import MOST_BYTES, add_metadata, has_external_data, metadata_in
from ptedge.artifacts.signature import SigningKey
from ptedge.artifacts.trust import Trust, describe_signature, require_bundle, sign_bundle
from ptedge.errors import ArtifactError, OutputError
from ptedge.files import (
    atomic_write,
    exchange,
    open_regular,
    parse_json,
    read_bounded,
    sha256_file,
    sha256_rest,
    write_error,
    write_json,
)

MANIFEST_NAME = "manifest.json"
MODEL_NAME = "model.onnx"
SECOND_NAME = "second_stage.onnx"
METADATA_KEY = "ptedge"


@dataclass(frozen=True)
class Bundle:
    """An opened bundle: every file matches the manifest.

    Attributes:
        path: what was opened, folder or ``.onnx`` file.
        manifest: what it says.
        model_path: the ONNX file; of two graphs the first.
        model_hash: sha256 of the ONNX file.
        signature: who vouches for it, in words.
        trust: keys that its engines must be signed with; ``None`` where nothing is to be checked.
    """

    path: Path
    manifest: Manifest
    model_path: Path
    model_hash: str
    signature: str = field(default="none", compare=False)
    trust: Trust | None = field(default=None, compare=False)

    def read_model(self) -> bytes:
        """The ONNX file, once more held to its hash: what was checked on opening is what is loaded.

        Raises:
            ArtifactError: unreadable, or changed since.
        """
        return self._read(self.model_path, self.model_hash)

    def read_second(self) -> bytes | None:
        """The graph of the second stage, held to its hash; ``None`` where the model is one graph.

        Raises:
            ArtifactError: unreadable, or changed.
        """
        expected = self.manifest.second_stage
        return None if expected is None else self._read(self.second_path, expected)

    @property
    def second_path(self) -> Path:
        """Where the graph of the second stage is, in a bundle that has one."""
        return self.model_path.with_name(SECOND_NAME)

    def _read(self, path: Path, expected: str) -> bytes:
        try:
            content = read_bounded(path, MOST_BYTES)
        except OSError as error:
            raise ArtifactError(f"cannot read {path}: {error.strerror}. {repair_hint(self.path)}") from None
        if hashlib.sha256(content).hexdigest() != expected:
            raise ArtifactError(f"{path} was changed while it was being opened. Open it again")
        return content


def is_bundle(path: Path) -> bool:
    """Whether a path looks like a bundle: a folder with ``manifest.json``, or an ``.onnx`` file."""
    return (path / MANIFEST_NAME).is_file() or (path.suffix == ".onnx" and path.is_file())


def write_bundle(
    folder: Path, manifest: Manifest, model: bytes, key: SigningKey | None = None, second: bytes | None = None
) -> Bundle:
    """Write a bundle whole: into a temporary folder beside, which then takes the name.

    Args:
        folder: where it goes. A bundle there is replaced, together with engines built from it; anything else is kept.
        manifest: description; its ``files`` are filled in here.
        model: serialised ONNX model without manifest.
        key: to sign it with.
        second: serialised ONNX of the second stage, where ``model`` is the first.

    Returns:
        The bundle that now stands there.

    Raises:
        OutputError: not writable, or ``folder`` is something other than a bundle.
    """
    folder = folder.resolve()  # behind a link, the target is replaced and the link stays
    if folder.exists() and not (folder / MANIFEST_NAME).is_file() and not (folder.is_dir() and _is_empty(folder)):
        raise OutputError(f"cannot write a bundle to {folder}: something else is there. Choose another --out")
    second_hash = None if second is None else hashlib.sha256(second).hexdigest()
    manifest = dataclasses.replace(manifest, second_stage=second_hash)
    inside = dataclasses.replace(manifest, files={}, engines=(), reference=None)
    description = json.dumps(inside.to_json(), ensure_ascii=False)
    model = add_metadata(model, METADATA_KEY, description)
    model_hash = hashlib.sha256(model).hexdigest()
    files = {MODEL_NAME: model_hash} | ({} if second_hash is None else {SECOND_NAME: second_hash})
    manifest = dataclasses.replace(manifest, files=files, engines=())
    _remove_left(folder)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        with atomic_write(temporary / MODEL_NAME) as file:
            file.write(model)
        if second is not None:
            with atomic_write(temporary / SECOND_NAME) as file:
                file.write(second)
        write_json(temporary / MANIFEST_NAME, manifest.to_json())
        if key is not None:
            sign_bundle(temporary, manifest.to_json(), key)
        _replace_folder(temporary, folder)
    except OSError as error:
        raise write_error(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return Bundle(folder, manifest, folder / MODEL_NAME, model_hash)


def open_bundle(path: Path, trust: Trust | None = None) -> Bundle:
    """Open a bundle folder or a bare ``.onnx`` file and check it.

    Args:
        path: folder, or ONNX file written by ``ptedge export``.
        trust: keys it must be signed with; ``None`` checks its hashes alone.

    Returns:
        The bundle. Files that the manifest lists are there and unchanged.

    Raises:
        ArtifactError: says which file is wrong and which command repairs it; or that nobody who is trusted signed it.
        MissingExtraError: ``trust`` is given and cryptography is not installed.
    """
    if not path.is_dir():
        if trust is not None:
            raise ArtifactError(f"{path} carries no signature, so --trust cannot check it. Give its bundle folder")
        if path.name == SECOND_NAME:
            raise ArtifactError(f"{path} is the second stage of a model in two graphs. Give its bundle: {path.parent}")
        manifest, model_hash = _read_model(path, path.parent)
        second = path.with_name(SECOND_NAME)
        if manifest.second_stage is not None and _hash(second, path) != manifest.second_stage:
            raise _changed(second, path)
        return Bundle(path, manifest, path, model_hash, "none: it is a file alone")
    where = path / MANIFEST_NAME
    values = read_manifest(path)
    manifest = Manifest.from_json(values, str(where))
    for name in (MODEL_NAME, *([] if manifest.second_stage is None else [SECOND_NAME])):
        if name not in manifest.files:
            raise ArtifactError(f"{where} does not list {name}. {repair_hint(path)}")
    # before anything else in the folder is read
    signature = describe_signature(path) if trust is None else _trusted(path, values, trust)
    for name, expected in manifest.files.items():
        if Path(name).name != name:
            raise ArtifactError(f"{where} lists {name!r}, which is not a file name. {repair_hint(path)}")
        if name != MODEL_NAME and _hash(path / name, path) != expected:
            raise _changed(path / name, path)
    inside, model_hash = _read_model(path / MODEL_NAME, path, manifest.files[MODEL_NAME])
    _check_same(manifest, inside, where)
    return Bundle(path, manifest, path / MODEL_NAME, model_hash, signature, trust)


def sign_again(bundle: Bundle, key: SigningKey) -> None:
    """Sign a bundle as it lies there.

    Args:
        bundle: opened bundle folder.
        key: to sign with.

    Raises:
        ArtifactError: its manifest cannot be read.
        OutputError: the signature cannot be written.
    """
    sign_bundle(bundle.path, read_manifest(bundle.path), key)


def _trusted(path: Path, values: dict[str, Any], trust: Trust) -> str:
    found = require_bundle(path, values, trust)
    return f"signed by {found.fingerprint} on {found.statement.signed}"


def read_manifest(path: Path) -> dict[str, Any]:
    """The values of ``manifest.json``, unchecked.

    Args:
        path: bundle folder.

    Raises:
        ArtifactError: unreadable, or no JSON table.
    """
    where = path / MANIFEST_NAME
    try:
        values = parse_json(read_bounded(where))
    except OSError as error:
        raise ArtifactError(f"cannot read {where}: {error.strerror}. {repair_hint(path)}") from None
    except ValueError as error:
        raise ArtifactError(f"{where} is not valid JSON ({error}). {repair_hint(path)}") from None
    if not isinstance(values, dict):
        raise ArtifactError(f"{where} is not a ptedge manifest. {repair_hint(path)}")
    return values


def _changed(path: Path, bundle: Path) -> ArtifactError:
    return ArtifactError(f"{path} does not match the manifest: changed or cut short. {repair_hint(bundle)}")


def _check_same(manifest: Manifest, inside: Manifest, where: Path) -> None:
    """Refuse a manifest that says something else of the model than the model itself.

    Left out: hashes of files, engines and the reference (which come later), lineage (``ptedge verify`` compares it),
    and in schema 1 sigma_scale, which was filled in after the export.
    """
    free = {"files", "engines", "lineage", "reference"} | ({"sigma_scale"} if manifest.schema < 2 else set())
    outer, inner = manifest.to_json(), inside.to_json()
    for key in sorted(outer.keys() | inner.keys()):
        if key not in free and outer.get(key) != inner.get(key):
            raise ArtifactError(
                f"{where} says {key} = {outer.get(key)!r}, but {MODEL_NAME} was exported with {inner.get(key)!r}. "
                f"{repair_hint(where.parent)}"
            )


def _read_model(path: Path, bundle: Path, expected: str | None = None) -> tuple[Manifest, str]:
    """The manifest inside an ONNX file, and the file's hash; all of it read from one opened file.

    Raises:
        ArtifactError: unreadable, not what ``expected`` says, damaged, or with weights outside the file.
    """
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES >> 30} GB")
            model_hash = sha256_rest(file)
            if expected is not None and model_hash != expected:
                raise _changed(path, bundle)
            text = metadata_in(file).get(METADATA_KEY)
            external = has_external_data(file)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. {repair_hint(bundle)}") from None
    except ValueError as error:
        raise ArtifactError(f"{path} is not a whole ONNX file ({error}). {repair_hint(bundle)}") from None
    if external:
        raise ArtifactError(
            f"{path} keeps weights in other files (external data), which no hash covers. {repair_hint(bundle)}"
        )
    if text is None:
        raise ArtifactError(f"{path} was not written by ptedge: no manifest inside. {repair_hint(bundle)}")
    try:
        values = parse_json(text)
    except ValueError:
        raise ArtifactError(f"the manifest inside {path} is not valid JSON. {repair_hint(bundle)}") from None
    return Manifest.from_json(values, str(path)), model_hash


def _hash(path: Path, bundle: Path) -> str:
    try:
        return sha256_file(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. {repair_hint(bundle)}") from None


def _is_empty(folder: Path) -> bool:
    return next(folder.iterdir(), None) is None


def _remove_left(folder: Path) -> None:
    """Remove what killed processes left of their writing; a process that is alive goes on with its own."""
    if sys.platform == "win32":  # where signal 0 is no question
        return
    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*.tmp"):
        number = left.name.split(".")[-2]
        try:
            os.kill(int(number), 0)
        except ValueError:
            continue  # no name of ours
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # alive, of another user


def _replace_folder(new: Path, folder: Path) -> None:
    """Give ``new`` the name ``folder``. No folder can be renamed onto a full one: the two exchange names, or where the
    system cannot, the old one steps aside first.
    """
    if not folder.exists():
        os.replace(new, folder)
        return
    if exchange(new, folder):
        shutil.rmtree(new, ignore_errors=True)
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
