"""Promote and roll back: the two ways to change what runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.trust import Trust
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.files import sha256_file, sync_folder
from ptedge.folders import hold_folder

from .check import GateCheck, failed
from .gate import run_gate
from .history import Entry, State, append, now
from .options import GateOptions
from .place import VERSIONS, Deployment, Place, facts_of, files_of, new_deployment, version_name


@dataclass(frozen=True)
class Promotion:
    """What a promotion came to.

    Attributes:
        version: name of the bundle as a version.
        before: that ran before, empty for none.
        promoted: it runs now and did not before.
        checks: of the gate, none where it runs already.
        number: of the entry; 0 where there is none.
        removed: versions whose files were removed.
    """

    version: str
    before: str
    promoted: bool
    checks: tuple[GateCheck, ...] = ()
    number: int = 0
    removed: tuple[str, ...] = ()


def promote(
    path: Path,
    to: Place,
    options: GateOptions,
    *,
    why: str = "",
    again: bool = False,
    dry_run: bool = False,
    keep: int = 5,
    log: Callable[[str], None] = lambda text: None,
) -> Promotion:
    """Have a deployment run a bundle, if it passes the gate.

    Args:
        path: bundle folder.
        to: the deployment, made when missing.
        options: of the gate.
        why: a word for the history.
        again: also a version that was rolled back.
        dry_run: the gate alone.
        keep: versions to go back to whose files stay, the new one among them; at least 2.
        log: progress.

    Returns:
        What came of it; not promoted where a check fails, or where it runs already.

    Raises:
        ArtifactError: the bundle or the history is broken, or nobody who is trusted signed it.
        InputError: it was rolled back before; no such frames.
        OutputError: not writable; or another promotion came first.
        BackendError: the backend asked for is not there.
    """
    bundle = open_bundle(path, Trust.read(options.trust))
    deployment = new_deployment(to)
    state = deployment.state()
    files = {name: sha256_file(bundle.path / name) for name in files_of(bundle)}
    version, before = version_name(files), state.version or ""
    if version == before:
        return Promotion(version, before, promoted=False)
    refuse_withdrawn(state, version, again)
    champion = _champion(deployment, state, log)
    checks = tuple(run_gate(bundle, champion, options, log))
    if failed(checks) or dry_run:
        return Promotion(version, before, promoted=False, checks=checks)
    wanted = Entry(1, "promote", version, before, why=why, files=files, model=facts_of(bundle), checks=checks)
    return install(deployment, bundle, wanted, keep)


def install(deployment: Deployment, bundle: Bundle, wanted: Entry, keep: int) -> Promotion:
    """Put a version's files, then the entry that has it run; remove files of old versions.

    Args:
        deployment: gets it.
        bundle: whose files.
        wanted: the entry, but for its number and time. It is made only where ``wanted.before`` runs still.
        keep: versions to go back to whose files stay.

    Raises:
        ArtifactError: the bundle is not what ``wanted`` says.
        OutputError: not writable; or another promotion came first.
    """

    def entry(state: State) -> Entry:
        if (state.version or "") != wanted.before:
            raise OutputError(
                f"{deployment.address}: {state.version} was promoted or rolled back to meanwhile. Promote again"
            )
        return dataclasses.replace(wanted, number=state.number + 1, time=now())

    # one at a time: what one puts, another must not remove as old
    with hold_folder(deployment.path, "ptedge promote"):
        sync_folder(deployment.path.resolve().parent)  # it may be new
        if deployment.put_version(bundle)[0] != wanted.version:
            raise ArtifactError(f"{bundle.path} was changed while it was looked at. Promote it again")
        deployment.check_version(wanted.version, wanted.files)
        made, state = append(deployment.store, entry)
        removed = remove_old(deployment, state, keep)
        return Promotion(wanted.version, wanted.before, True, wanted.checks, made.number, removed)


def rollback(
    deployment: Deployment,
    *,
    to: str | None = None,
    expected: str | None = None,
    why: str = "",
    automatic: bool = False,
) -> Entry:
    """Have an earlier version run again, after a look whether it is whole.

    Args:
        deployment: that is there.
        to: name of the version, or its beginning; ``None`` takes the one before.
        expected: the version that is to be given up; another one is left alone.
        why: for the history.
        automatic: a run does it, no person.

    Returns:
        The new entry.

    Raises:
        InputError: there is no earlier version, or no such one.
        ArtifactError: its files are not whole.
        OutputError: not writable; or ``expected`` does not run.
    """

    def entry(state: State) -> Entry:
        before = state.version
        if before is None or (expected is not None and before != expected):
            raise OutputError(f"{deployment.address}: {expected or 'a version'} does not run there any more")
        version = state.earlier if to is None else _named(state, to)
        if version is None or version == before:
            raise InputError(f"{deployment.address}: {before} runs, and there is no other version to go back to")
        deployment.check_version(version, state.files[version])
        return Entry(state.number + 1, "rollback", version, before, now(), why, automatic)

    return append(deployment.store, entry)[0]


def remove_old(deployment: Deployment, state: State, keep: int) -> tuple[str, ...]:
    """Remove the files of versions that no rollback of the next few goes to.

    Args:
        deployment: whose files.
        state: of it.
        keep: versions that stay, the running one among them.

    Returns:
        Names of those removed now.
    """
    stay = set(state.running[-keep:])
    there = {item.key.split("/")[1] for item in deployment.store.list(VERSIONS)}
    old = [version for version in state.files if version not in stay and version in there]
    for version in old:
        deployment.remove_version(version)
    return tuple(old)


def refuse_withdrawn(state: State, version: str, again: bool) -> None:
    """Keep out a version that was rolled back.

    Args:
        state: of the deployment.
        version: to be promoted.
        again: promote it all the same.

    Raises:
        InputError: it was rolled back.
    """
    if version in state.withdrawn and not again:
        why = state.withdrawn[version]
        raise InputError(
            f"version {version} was promoted before and rolled back{f' ({why})' if why else ''}. "
            "--again promotes it all the same"
        )


def _champion(deployment: Deployment, state: State, log: Callable[[str], None]) -> Path | None:
    """The folder of the running version; told and left out where its files are not whole."""
    if state.version is None:
        return None
    try:
        return deployment.folder_of(state.version, state.files[state.version])
    except ArtifactError as error:
        log(f"the running version is not whole: {error}")
        return None


def _named(state: State, name: str) -> str:
    found = [version for version in state.files if version.startswith(name)]
    if len(found) != 1:
        known = ", ".join(state.files)
        raise InputError(f"{name!r} is the name of {len(found)} versions; there are: {known}")
    return found[0]
