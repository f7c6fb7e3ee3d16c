"""The manifest of a bundle: all that is needed to use its model, and where it came from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge import __version__
from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.artifacts.conversion import PRECISIONS, Conversion
from ptedge.artifacts.engine_file import EngineRecord, records_from_json, records_to_json
from ptedge.artifacts.estimate import LabelFreeEstimate
from ptedge.artifacts.lineage import Lineage
from ptedge.calibration import (
    NO_OFFSET,
    NO_SCALE,
    CalibrationOrigin,
    SideCalibration,
    Sides,
    check_intervals,
    check_offset,
    check_scale,
)
from ptedge.config import from_dict, require, require_one_of, to_dict
from ptedge.detector.config import check_input_size
from ptedge.drift.reference import Reference
from ptedge.errors import ArtifactError, ConfigError
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD
from ptedge.stages.settings import Selection

SCHEMA = 2  # 1 had sigma_scale applied after the graph, and no side_offset
MOST_CLASSES = 10_000
MOST_FILES = 100


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
        side_offset: how far x1, y1, x2, y2 lie off, in shares of the box; the graph moves them back.
        sigma_scale: what the graph multiplies sigma of x1, y1, x2, y2 by. In schema 1 its user does that.
        intervals: coverage ("0.9") -> factor of each side: side +- factor * sigma holds that share of labels.
        calibrated: what these three were measured on; ``None`` for a graph that corrects nothing.
        estimate: of AP without labels, on the frames the model was adapted to; ``None`` where nobody made one.
        reference: what frames are like at the place the model was made for; not in the manifest inside the ONNX file.
        adaptation: what watched over the adaptation of the model; ``None`` for none.
        score_rule: how the graph computes scores, one of :data:`ptedge.detector.config.SCORE_RULES`.
        sigma_rule: how the graph computes sigma, one of :data:`ptedge.detector.config.SIGMA_RULES`.
        max_detections: rows D of every output.
        score_threshold: detections below it are not in the output.
        selection: what code needs that runs the model in two stages; ``None`` in manifests written before there was it.
        second_stage: sha256 of ``second_stage.onnx`` where the model is two graphs, of which ``model.onnx`` is the
            first; ``None`` for the one graph.
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
    side_offset: Sides = NO_OFFSET
    sigma_scale: Sides = NO_SCALE
    intervals: dict[str, Sides] = field(default_factory=dict)
    calibrated: CalibrationOrigin | None = None
    estimate: LabelFreeEstimate | None = None
    reference: Reference | None = None
    adaptation: AdaptationRecord | None = None
    score_rule: str = "class"
    sigma_rule: str = "own"
    max_detections: int = 100
    score_threshold: float = 0.05
    selection: Selection | None = None
    second_stage: str | None = None
    lineage: Lineage = field(default_factory=Lineage)
    created: str = ""
    schema: int = SCHEMA
    tools: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    engines: tuple[EngineRecord, ...] = ()

    def __post_init__(self) -> None:
        if len(self.class_names) > MOST_CLASSES:
            raise ValueError(f"class_names has {len(self.class_names)} names; {MOST_CLASSES} are the most")
        if not self.class_names or len(set(self.class_names)) != len(self.class_names):
            raise ValueError(f"class_names is {list(self.class_names)[:20]}; it must hold distinct names, at least one")
        check_input_size(self.input_size)
        for name, values in (("anchors", sum(self.anchors, ())), ("mean", self.mean), ("std", self.std)):
            if not all(map(math.isfinite, values)):
                raise ValueError(f"{name} must be finite numbers")
        require("batch", self.batch, 1)
        require("max_detections", self.max_detections, 1)
        require("score_threshold", self.score_threshold, 0, 1)
        check_offset(self.side_offset)
        check_scale(self.sigma_scale)
        check_intervals(self.intervals)
        if self.schema < 2 and (any(self.side_offset) or self.intervals or self.calibrated is not None):
            raise ValueError("side_offset, intervals and calibrated belong to schema 2")
        if self.second_stage is not None and self.selection is None:
            raise ValueError("second_stage needs selection, which says what happens between the two graphs")
        require_one_of("letterbox", self.letterbox, ("top_left_mean",))
        require_one_of("color", self.color, ("RGB",))
        require_one_of("precision", self.precision, PRECISIONS)

    @property
    def scale_after_graph(self) -> Sides:
        """What sigma of the graph is still to be multiplied by: in schema 1, whose graphs apply nothing."""
        return self.sigma_scale if self.schema < 2 else NO_SCALE

    @property
    def calibration(self) -> SideCalibration | None:
        """What the graph applies; ``None`` where it corrects nothing."""
        if self.calibrated is None:
            return None
        return SideCalibration(self.side_offset, self.sigma_scale, self.intervals, self.calibrated)

    def with_calibration(self, calibration: SideCalibration | None) -> Manifest:
        """The same description of a graph that applies a calibration.

        Args:
            calibration: ``None`` for none.
        """
        given = calibration if calibration is not None else SideCalibration()
        return dataclasses.replace(
            self,
            side_offset=given.offset,
            sigma_scale=given.scale,
            intervals=given.intervals,
            calibrated=given.origin if calibration is not None else None,
        )

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
            raise ArtifactError(f"{where} is not a ptedge manifest. {repair_hint()}")
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
                raise ArtifactError(f"{where}: {name} must map names to text. {repair_hint()}")
            if len(table) > MOST_FILES:
                raise ArtifactError(f"{where}: {name} has {len(table)} entries; {MOST_FILES} are the most")
        try:
            return dataclasses.replace(from_dict(cls, rest, where), tools=tools, files=files, engines=engines)
        except ConfigError as error:
            raise ArtifactError(f"{error}. {repair_hint()}") from None


def repair_hint(bundle: Path | None = None) -> str:
    """The command that mends a bundle, as a sentence.

    Args:
        bundle: its folder, where it is known.
    """
    return f"Write it again: ptedge export CHECKPOINT --out {bundle or 'BUNDLE'}"
