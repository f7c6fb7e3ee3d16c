"""Follow a deployment while a run goes on: load a new version beside the old one, and exchange them.

A thread looks now and then whether the history has another entry. The new version is fetched where it is far, loaded
and asked a few times before it takes over, so that no frame waits for it. While the place is away, what runs goes on,
and a run begins with the last version that is whole on this machine.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import ArtifactError, PtedgeError
from ptedge.machine.memory import main_memory, resident_memory

from ..slot import LoadedModel, ModelSlot
from . import crashes
from .answers import made_images
from .followed import Followed
from .history import State
from .looks import OF_A_BUCKET, OF_A_FOLDER, Looks
from .place import Deployment
from .trial import Trial

WARM_CALLS = 3
MOST_CRASHES = 3  # of runs in the probation of a version, until it is not tried again
ROOM = 1.2  # times the memory that the running version took must be free

Load = Callable[[Path], BundlePredictor]


class Follower:
    """A deployment's version in a slot, and the one after it.

    Attributes:
        slot: holds the model that runs.
        looks: when it looks for another one.
        switched: called with each new model, on the follower's thread.
    """

    def __init__(
        self,
        deployment: Deployment,
        load: Load,
        log: Callable[[str], None],
        probation: float = 0.0,
        seconds: float | None = None,
    ) -> None:
        """Load the version that runs; where it is on probation still, the one before as well.

        Args:
            deployment: that is there.
            load: opens a bundle folder.
            log: told what happens.
            probation: seconds of a new version; 0 for none.
            seconds: between two looks at the deployment; ``None`` for what suits a folder or a bucket.

        Raises:
            PtedgeError: it cannot be loaded, nor one before it.
        """
        seconds = seconds or (OF_A_BUCKET if deployment.far else OF_A_FOLDER)
        self.looks = Looks(self.look, self._judge, deployment.address, log, seconds)
        self._followed = Followed(deployment, log)
        self._load, self._log, self._probation = load, log, probation
        self.switched: Callable[[LoadedModel], None] = lambda model: None
        if (behind := self._followed.begin(self._wanted)) is not None:
            self.looks.fail(behind)
        self._switches: list[dict[str, Any]] = []
        self._refused: set[tuple[str, int]] = set()  # version and promotion
        self._trial: Trial | None = None
        self._mark: str | None = None
        before = resident_memory()
        self.slot = ModelSlot(self._open_first())
        self._needs = max(0, resident_memory() - before)
        try:
            self._try_first()
        except PtedgeError as error:
            log(f"{deployment.address}: no probation: {error}")

    @property
    def _state(self) -> State:
        return self._followed.state

    @property
    def _deployment(self) -> Deployment:
        return self._followed.deployment

    def start(self) -> None:
        """Look for new versions from now on."""
        self.looks.start()

    def close(self) -> None:
        """Stop looking, after a last look at the probation; a version that is being loaded is still loaded."""
        if self.looks.stop():
            with contextlib.suppress(PtedgeError):
                self._judge()
        crashes.end(self._deployment.local, self._mark)

    def to_json(self) -> dict[str, Any]:
        """For the report and ``/status.json``."""
        return {
            "deployment": self._deployment.address,
            "version": self.slot.current.version,
            "probation": self._trial.describe() if self._trial is not None else None,
            "switches": list(self._switches),
            **self.looks.to_json(),
        }

    def look(self) -> None:
        """Judge a probation that is over, and take the version that the deployment runs now, if it is another one.

        Raises:
            PtedgeError: the deployment cannot be read or written.
        """
        self._judge()
        if not self._followed.moved():
            return
        running, trial = self.slot.current, self._trial
        state = self._followed.look()
        if state.version not in (None, running.version):
            # where that fails, all of this is done again
            self._followed.fetch(state, [str(state.version)], [str(running.version)])
        if self.looks.stopped:
            return
        self._followed.state = state
        if state.version in (None, running.version) or self._promotion(str(state.version)) in self._refused:
            return
        if trial is not None and state.version == trial.champion.version:
            self._end_trial()
            self._switch(trial.champion, "the deployment was rolled back")
            self.slot.retire(trial.challenger)
            return
        if (model := self._open_beside(state)) is None:
            return
        self.slot.add(model)
        if trial is not None:
            self._end_trial()
            self.slot.retire(trial.champion)
        if self._on_probation(state):
            self._begin_trial(running, model)
        self._switch(model, "promoted" if state.earlier == running.version else "the deployment was changed")
        if self._trial is None:
            self.slot.retire(running)

    def _judge(self) -> None:
        """Go back from a version that failed, or keep one that has passed; the history gets an entry."""
        trial = self._trial
        if trial is None or not (trial.failed or trial.passed):
            return
        version, before = str(trial.challenger.version), str(trial.champion.version)
        self._end_trial()
        if trial.failed:
            self._refused.add(self._promotion(version))
            self._note_switch(version, before, trial.failed)
            self.switched(trial.champion)
            self._followed.send_back(version, trial.failed)
            self.slot.retire(trial.challenger)
            return
        self._log(f"{self._deployment.address}: {version} has passed its probation: {trial.describe()}")
        self.slot.retire(trial.champion)
        self._followed.keep(version, trial.describe(), trial.figures())

    def _begin_trial(self, champion: LoadedModel, challenger: LoadedModel) -> None:
        self._trial = self.slot.trial = Trial(self.slot, champion, challenger, self._probation)
        promotion = self._state.promoted.get(str(challenger.version), 0)
        self._mark = crashes.begin(self._deployment.local, promotion)

    def _end_trial(self) -> None:
        """Groups of a version that failed must not reach it: the slot keeps the trial for them."""
        if self._trial is not None and not self._trial.failed:
            self.slot.trial = None
        self._trial = None
        crashes.end(self._deployment.local, self._mark)
        self._mark = None

    def _on_probation(self, state: State) -> bool:
        return self._probation > 0 and state.unproven

    def _wanted(self, state: State) -> list[str]:
        """Versions that a run has to have: on probation, the one before as well."""
        return [str(v) for v in (state.version, state.earlier) if v == state.version or self._on_probation(state)]

    def _open_first(self) -> LoadedModel:
        """The version that runs, or after a fault of it the one before."""
        while True:
            version, state = str(self._state.version), self._state
            try:
                if self._on_probation(state):
                    self._refuse_crashed(version)
                return self._open(state, version)
            except PtedgeError as error:
                if not self._on_probation(state):
                    raise
                self._log(f"{self._deployment.address}: {version} is not taken: {error}")
                self._followed.send_back(version, str(error))
                if self._state.version == version:
                    raise

    def _refuse_crashed(self, version: str) -> None:
        """Raises ArtifactError where the version took several runs with it."""
        died = crashes.crashes(self._deployment.local, self._state.promoted[version])
        if died >= MOST_CRASHES:
            raise ArtifactError(f"{died} runs died in its probation")

    def _try_first(self) -> None:
        """Load the version before beside one that is on probation still.

        Raises:
            PtedgeError: it cannot be loaded, or there is no memory for it.
        """
        state = self._state
        if self._on_probation(state) and state.earlier is not None:
            self._tell_memory(state.earlier)
            champion = self._open(state, state.earlier)
            _check_classes(champion.predictor, self.slot.predictor)
            self.slot.add(champion)
            self._begin_trial(champion, self.slot.current)

    def _open_beside(self, state: State) -> LoadedModel | None:
        """The version of a state, warm; ``None``, and told, where it cannot take over."""
        version = str(state.version)
        try:
            self._tell_memory(version)
        except ArtifactError as error:
            self._refuse(version, error)
            return None
        try:
            model = self._open(state, version)
            warm(model.predictor)
        except PtedgeError as error:
            self._refuse(version, error)
            if self._on_probation(state):
                self._followed.send_back(version, f"it cannot be loaded: {error}")
            return None
        try:
            _check_classes(self.slot.predictor, model.predictor)
        except ArtifactError as error:
            model.predictor.close()
            self._refuse(version, error)
            return None
        return model

    def _refuse(self, version: str, error: PtedgeError) -> None:
        self._refused.add(self._promotion(version))
        self._log(f"{self._deployment.address}: {self.slot.current.version} goes on: {error}")

    def _promotion(self, version: str) -> tuple[str, int]:
        """A version and when it was promoted: again is another try."""
        return version, self._state.promoted.get(version, 0)

    def _switch(self, model: LoadedModel, why: str) -> None:
        old = self.slot.current
        self.slot.switch(model)
        self._note_switch(str(old.version), str(model.version), why)
        self.switched(model)

    def _note_switch(self, old: str, new: str, why: str) -> None:
        self._switches.append({"time": round(time.time(), 3), "from": old, "to": new, "why": why})
        self._log(f"{self._deployment.address}: {new} runs now, before it {old}: {why}")

    def _open(self, state: State, version: str) -> LoadedModel:
        return LoadedModel(self._load(self._deployment.folder_of(version, state.files[version])), version)

    def _tell_memory(self, version: str) -> None:
        """Say what a second model takes.

        Raises:
            ArtifactError: there is not so much memory.
        """
        free = main_memory().available
        text = f"about {self._needs / 1e6:.0f} MB of memory needed beside the running version, {free / 1e6:.0f} MB free"
        if self._needs * ROOM > free:
            raise ArtifactError(f"{version} is not loaded: {text}. Start the run again to take it")
        self._log(f"{self._deployment.address}: loading {version}: {text}")


def warm(predictor: BundlePredictor) -> None:
    """Ask a model a few times, so that its first frame takes no longer than the others.

    Args:
        predictor: loaded.

    Raises:
        PtedgeError: it fails.
    """
    image = made_images(predictor.input_size)["noise"]
    for _ in range(WARM_CALLS):
        predictor.detect(image)


def _check_classes(old: BundlePredictor, new: BundlePredictor) -> None:
    if old.class_names != new.class_names:
        raise ArtifactError(
            f"the new version has classes {list(new.class_names[:10])}, but this run began with "
            f"{list(old.class_names[:10])}. Start the run again to take it"
        )
