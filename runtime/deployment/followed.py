"""A deployment as one machine follows it: what is there, what of it is here, and what this machine has to say to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from ptedge.errors import ArtifactError, InputError, OutputError, PtedgeError, StoreError

from . import alone
from .change import rollback
from .history import Entry, State, append, now, state_of
from .place import Deployment

TRIES = 5  # to record what could not be recorded at once


class Followed:
    """A deployment, and this machine's part in it.

    Attributes:
        deployment: it.
        state: that this machine acts on.
    """

    def __init__(self, deployment: Deployment, log: Callable[[str], None]) -> None:
        """Take a deployment; nothing is read.

        Args:
            deployment: that is there.
            log: told what happens.
        """
        self.deployment, self._log = deployment, log
        self.state = State()
        self._untold: tuple[str, str, int] | None = None  # version, why, tries left

    def begin(self, wanted: Callable[[State], Iterable[str]]) -> Exception | None:
        """Take the state of the deployment; while it is away, or its version cannot be fetched, the last one that is
        here whole.

        Args:
            wanted: versions of a state that have to be here.

        Returns:
            Why it is an earlier state; ``None`` where it is that of the deployment.

        Raises:
            PtedgeError: there is nothing here to begin with.
        """
        deployment = self.deployment
        try:
            state = self.look()
            if state.version is None:
                raise InputError(f"{deployment.address} is no deployment: nothing was promoted to it")
            self.fetch(state, wanted(state))
            self.state = state
            return None
        except (StoreError, ArtifactError, OutputError) as error:
            self.state = alone.decided(deployment.local, deployment.state_here()) if deployment.far else State()
            if self.state.version is None:
                raise
            return error

    def moved(self) -> bool:
        """Whether the deployment has another entry; what could not be recorded is tried again first.

        Raises:
            StoreError: it is away.
        """
        if self._untold is not None:
            version, why, left = self._untold
            self._untold = (version, why, left - 1) if left > 1 else None
            with contextlib.suppress(OutputError):  # it does not run there any more
                self._record(version, why)
            self._untold = None
        return self.deployment.moved(self.state.number)

    def look(self) -> State:
        """The deployment's state now, without what was sent back here.

        Raises:
            PtedgeError: it is away, or its history is damaged.
        """
        return alone.decided(self.deployment.local, self.deployment.state())

    def fetch(self, state: State, versions: Iterable[str], loaded: Iterable[str] = ()) -> None:
        """Have versions on this machine, and no others but those that run.

        Args:
            state: that they are of.
            versions: their names.
            loaded: versions in use.

        Raises:
            PtedgeError: they cannot be fetched now.
        """
        wanted = set(versions)
        for version in sorted(wanted):
            self.deployment.fetch(version, state.files[version])
        self.deployment.forget_others({*wanted, *loaded, str(state.version), str(state.earlier)})

    def send_back(self, version: str, why: str) -> None:
        """Record that a version goes back. Where that is not possible it is told, noted on this machine where the
        deployment is far, and tried again a few times.

        Args:
            version: that runs there.
            why: for the history.
        """
        try:
            self._record(version, why)
            return
        except PtedgeError as error:
            self._log(f"{self.deployment.address}: that {version} goes back was not recorded there: {error}")
        if self.deployment.far and self.state.version == version:
            with contextlib.suppress(StoreError):
                alone.note(self.deployment.local, self.state.promoted[version], why)
            self.state = alone.decided(self.deployment.local, self.state)
            self._untold = (version, why, TRIES)

    def keep(self, version: str, why: str, figures: dict[str, float]) -> None:
        """Record that a version has passed its probation, where it runs and nobody has yet.

        Args:
            version: its name.
            why: how much was looked at, and
            figures: the same in numbers.

        Raises:
            PtedgeError: the deployment cannot be written to.
        """
        with contextlib.suppress(_MovedError):
            self.state = append(self.deployment.store, lambda state: _kept(state, version, why, figures))[1]

    def _record(self, version: str, why: str) -> None:
        made = rollback(self.deployment, expected=version, why=why, automatic=True)
        self._log(f"{self.deployment.address}: {version} goes back: {why}; {made.version} runs")
        # not of what came after it, which the next look is for
        state = state_of(self.deployment.history()[: made.number])
        self.state = alone.decided(self.deployment.local, state)


class _MovedError(Exception):
    """Another version runs there meanwhile, or it is kept already."""


def _kept(state: State, version: str, why: str, figures: dict[str, float]) -> Entry:
    if state.version != version or version in state.kept:
        raise _MovedError
    return Entry(state.number + 1, "keep", version, version, now(), why, automatic=True, figures=figures)
