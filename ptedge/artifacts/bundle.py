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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge import __version__
from ptedge.artifacts.conversion import Conversion
from ptedge.artifacts.engine_file import EngineRecord, records_from_json, records_to_json
from ptedge.artifacts.lineage import Lineage
from ptedge.artifacts.onnx_metadata import add_metadata, read_metadata
from ptedge.config import from_dict, require, require_one_of, to_dict
from ptedge.detector.config import check_input_size
from ptedge.errors import ArtifactError, ConfigError, OutputError
from ptedge.files import atomic_write, sha256_file, write_error, write_json
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD

SCHEMA = 1
MANIFEST_NAME = "manifest.json"
MODEL_NAME = "model.onnx"
METADATA_KEY = "ptedge"


@dataclass(frozen=True)
class Manifest:
    """What a bundle says about its model.

    Attributes:
        class_names: names by label, background not among them.
        input_size: (height, width) of the network input in pixels, multiples of 16.
        anchors: (width, height) of each learned anchor in input pixels.
        backbone: name of the backbone.
        batch: images a call of the graph takes.
        letterbox: how an image is placed in the input; ``top_left_mean`` is :class:`ptedge.preprocess.Letterbox`.
        mean: channel mean the graph subtracts, 0..255.
        std: channel deviation the graph divides by, 0..255.
        color: order of the channels.
        precision: of the graph's weights.
        conversion: what is in that precision, and what is not.
        sigma_scale: calibration factors for sigma of x1, y1, x2, y2, applied after the graph.
        score_rule: how the graph computes scores, one of :data:`ptedge.detector.config.SCORE_RULES`.
        max_detections: rows D of every output.
        score_threshold: detections below it are not in the output.
        lineage: where the weights came from.
        created: time of writing, ISO 8601 UTC.
        schema: version of this description.
        tools: package -> version at export.
        files: name -> sha256 of the other files in the bundle.
        engines: TensorRT engines built from the model; checked when one is used, since the bundle works without.
    """

    class_names: tuple[str, ...]
    input_size: tuple[int, int]
    anchors: tuple[tuple[float, float], ...]
    backbone: str
    batch: int = 1
    letterbox: str = "top_left_mean"
    mean: tuple[float, float, float] = PIXEL_MEAN
    std: tuple[float, float, float] = PIXEL_STD
    color: str = "RGB"
    precision: str = "fp32"
    conversion: Conversion = field(default_factory=Conversion)
    sigma_scale: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    score_rule: str = "class"
    max_detections: int = 100
    score_threshold: float = 0.05
    lineage: Lineage = field(default_factory=Lineage)
    created: str = ""
    schema: int = SCHEMA
    tools: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    engines: tuple[EngineRecord, ...] = ()

    def __post_init__(self) -> None:
        if not self.class_names or len(set(self.class_names)) != len(self.class_names):
            raise ValueError(f"class_names is {list(self.class_names)}; it must hold distinct names, at least one")
        check_input_size(self.input_size)
        require("batch", self.batch, 1)
        require("max_detections", self.max_detections, 1)
        require("score_threshold", self.score_threshold, 0, 1)
        for factor in self.sigma_scale:
            require("sigma_scale", factor, 0, open_low=True)
        require_one_of("letterbox", self.letterbox, ("top_left_mean",))
        require_one_of("color", self.color, ("RGB",))
        require_one_of("precision", self.precision, ("fp32", "fp16", "int8"))

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in ``manifest.json``."""
        values = to_dict(self) | {"tools": dict(self.tools), "files": dict(self.files)}
        return values | {"engines": records_to_json(self.engines)}

    @classmethod
    def from_json(cls, values: Any, where: str) -> Manifest:
        """Read what :meth:`to_json` wrote.

        Args:
            values: parsed JSON.
            where: file, for messages.

        Raises:
            ArtifactError: newer schema, unknown or missing key, wrong type or value.
        """
        if not isinstance(values, dict) or not isinstance(values.get("schema"), int):
            raise ArtifactError(f"{where} is not a ptedge manifest. {_repair()}")
        if values["schema"] > SCHEMA:
            raise ArtifactError(
                f"{where} has schema {values['schema']}, but ptedge {__version__} reads up to {SCHEMA}. "
                f"Update ptedge here, or write the bundle with this version: ptedge export CHECKPOINT --out BUNDLE"
            )
        rest = dict(values)
        tools, files = rest.pop("tools", {}), rest.pop("files", {})
        engines = records_from_json(rest.pop("engines", []), where)
        for name, table in (("tools", tools), ("files", files)):
            if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
                raise ArtifactError(f"{where}: {name} must map names to text. {_repair()}")
        try:
            return dataclasses.replace(from_dict(cls, rest, where), tools=tools, files=files, engines=engines)
        except ConfigError as error:
            raise ArtifactError(f"{error}. {_repair()}") from None


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
        raise ArtifactError(f"cannot read {where}: {error.strerror}. {_repair(path)}") from None
    except ValueError as error:
        raise ArtifactError(f"{where} is not valid JSON ({error}). {_repair(path)}") from None
    manifest = Manifest.from_json(values, str(where))
    if MODEL_NAME not in manifest.files:
        raise ArtifactError(f"{where} does not list {MODEL_NAME}. {_repair(path)}")
    for name, expected in manifest.files.items():
        if Path(name).name != name:
            raise ArtifactError(f"{where} lists {name!r}, which is not a file name. {_repair(path)}")
        if _hash(path / name, path) != expected:
            raise ArtifactError(f"{path / name} does not match the manifest: changed or cut short. {_repair(path)}")
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
                f"{_repair(where.parent)}"
            )


def _manifest_inside(path: Path) -> Manifest:
    try:
        text = read_metadata(path).get(METADATA_KEY)
    except ValueError as error:
        raise ArtifactError(f"{path} is not a whole ONNX file ({error}). {_repair(path.parent)}") from None
    if text is None:
        raise ArtifactError(f"{path} was not written by ptedge: no manifest inside. {_repair(path.parent)}")
    try:
        values = json.loads(text)
    except ValueError:
        raise ArtifactError(f"the manifest inside {path} is not valid JSON. {_repair(path.parent)}") from None
    return Manifest.from_json(values, str(path))


def _hash(path: Path, bundle: Path) -> str:
    try:
        return sha256_file(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. {_repair(bundle)}") from None


def _repair(bundle: Path | None = None) -> str:
    return f"Write it again: ptedge export CHECKPOINT --out {bundle or 'BUNDLE'}"


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
