"""Run a model of two stages: a runner for each, selection and suppression between and behind them in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.manifest import Manifest
from ptedge.backends.runner import Runner, TimedRunner
from ptedge.errors import ArtifactError
from ptedge.graph_contract import FEATURES, FIRST_STAGE, OUTPUTS, PROPOSALS, SECOND_STAGE, VARIANCES
from ptedge.stages.select import Rules, Selector

Arrays = dict[str, NDArray[Any]]
DEVICE_TIMES = ("h2d", "compute", "d2h", "enqueue")


class SplitRunner:
    """Two stages as one :class:`ptedge.backends.runner.Runner`: the inputs and outputs of the one graph.

    Nothing is held between calls, so it may be called from as many threads as its stages may.

    Attributes:
        backend: of the stages.
        reason: why this one, in words.
        inputs: name -> (shape, dtype).
        output_names: those of the one graph.
    """

    def __init__(self, first: Runner, second: Runner, rules: Rules) -> None:
        """Take two loaded stages; both are closed with this runner.

        Args:
            first: image -> features and what the RPN says of every anchor.
            second: features and proposals -> classes, boxes, variances.
            rules: of the model.

        Raises:
            ArtifactError: they are not the two stages of one model.
        """
        self.stages = (first, second)
        self.backend, self.reason = first.backend, f"{first.reason}, in two stages"
        self.inputs = first.inputs
        self.output_names: tuple[str, ...] = OUTPUTS
        self._selector = Selector(rules)
        wanted = {name for name in SECOND_STAGE if name != VARIANCES or rules.selection.probabilistic}
        if not (set(first.output_names) >= set(FIRST_STAGE) and set(second.output_names) >= wanted):
            raise ArtifactError(
                f"the stages give {', '.join((*first.output_names, *second.output_names))}, which is not what the two "
                "stages of a model give. Write the bundle again: ptedge export CHECKPOINT --split --out BUNDLE"
            )
        self._feature_type = second.inputs[FEATURES][1]

    def infer(self, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
        """Run both stages once.

        Args:
            feeds: ``images``, of exactly the graph's shape and dtype.

        Returns:
            Outputs of the one graph.

        Raises:
            BackendError: as either stage's.
        """
        first, second = self.stages
        middle = first.infer(feeds)
        given, proposals, counts = self.second_inputs(middle)
        return self._selector.detect(second.infer(given), proposals, counts)

    def close(self) -> None:
        """Free both stages; a second call does nothing."""
        for stage in self.stages:
            stage.close()

    def __enter__(self) -> SplitRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def second_inputs(self, middle: Mapping[str, NDArray[Any]]) -> tuple[Arrays, NDArray[np.float32], list[int]]:
        """Inputs of the second stage, and the proposals with how many of them each image has.

        Args:
            middle: outputs of the first stage.
        """
        proposals, counts = self._selector.propose(middle)
        features = middle[FEATURES].astype(self._feature_type, copy=False)
        return {FEATURES: features, PROPOSALS: proposals}, proposals, counts


class TimedSplitRunner(SplitRunner):
    """Two engines of TensorRT, which know the device's own times (:class:`ptedge.backends.runner.TimedRunner`).

    Attributes:
        name: of the first engine.
        graph: how calls are launched, of both.
        memory: ``pinned`` or ``mapped``.
    """

    def __init__(self, first: TimedRunner, second: TimedRunner, rules: Rules) -> None:
        """As :class:`SplitRunner`."""
        super().__init__(first, second, rules)
        self._timed = (first, second)
        told = [
            (getattr(stage, "name", ""), getattr(stage, "graph", ""), getattr(stage, "memory", ""))
            for stage in self._timed
        ]
        self.name, graph, self.memory = told[0]
        self.graph = graph if graph == told[1][1] else f"{graph}; second stage: {told[1][1]}"

    def infer_timed(self, feeds: Mapping[str, NDArray[Any]]) -> tuple[Arrays, dict[str, float]]:
        """As :meth:`infer`, with the device's times of both stages together; what NumPy does is in none of them."""
        first, second = self._timed
        middle, before = first.infer_timed(feeds)
        given, proposals, counts = self.second_inputs(middle)
        outputs, after = second.infer_timed(given)
        times = {name: before[name] + after[name] for name in DEVICE_TIMES}
        return self._selector.detect(outputs, proposals, counts), times

    def time_launches(self, calls: int) -> float:
        """Seconds that ``calls`` launches of both stages take, each behind the other, nothing copied or selected."""
        return sum(stage.time_launches(calls) for stage in self._timed)


def pair_stages(first: Runner, second: Runner, manifest: Manifest) -> SplitRunner:
    """Two loaded stages of a bundle as one runner.

    Args:
        first: of the first graph.
        second: of the second.
        manifest: of the bundle.

    Raises:
        ArtifactError: the manifest does not say how to select, or these are no two stages of a model.
    """
    try:
        rules = rules_of(manifest)
        if isinstance(first, TimedRunner) and isinstance(second, TimedRunner):
            return TimedSplitRunner(first, second, rules)
        return SplitRunner(first, second, rules)
    except BaseException:
        first.close()
        second.close()
        raise


def rules_of(manifest: Manifest) -> Rules:
    """What the code between and behind two stages follows.

    Args:
        manifest: of the bundle.

    Raises:
        ArtifactError: it was written before manifests said how to select.
    """
    selection = manifest.selection
    if selection is None:
        raise ArtifactError(
            "the bundle's manifest does not say how to select between two stages. Write it again: ptedge export "
            "CHECKPOINT --out BUNDLE"
        )
    return Rules(
        selection=selection,
        input_size=manifest.input_size,
        score_rule=manifest.score_rule,
        clustered=selection.probabilistic and manifest.sigma_rule == "cluster",
        score_threshold=manifest.score_threshold,
        max_detections=manifest.max_detections,
        side_offset=manifest.side_offset,
        sigma_scale=manifest.sigma_scale,
    )
