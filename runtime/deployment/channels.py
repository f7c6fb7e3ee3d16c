"""Channels: deployments that take over what another one has tried, a canary before all others.

The same bytes travel, held to the hashes in the history of where they come from. There is no second gate: the version
passed one there, and its probation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.trust import Trust
from ptedge.errors import InputError

from .change import Promotion, install, refuse_withdrawn
from .history import Entry, state_of
from .place import Deployment, Place, new_deployment


@dataclass(frozen=True)
class Tried:
    """What runs on a deployment, to be passed on.

    Attributes:
        bundle: it, opened.
        promotion: the entry that has it run there.
        origin: deployment and number of that entry, for the history of those who take it.
    """

    bundle: Bundle
    promotion: Entry
    origin: str


def tried(source: Deployment, trust: Trust | None = None, unproven: bool = False) -> Tried:
    """What runs on a deployment, if a run has kept it.

    Args:
        source: that is there.
        trust: keys that it must be signed with; ``None`` checks its hashes alone.
        unproven: also one that is on probation still.

    Raises:
        InputError: it is on probation.
        ArtifactError: it is not whole, or nobody who is trusted signed it.
    """
    entries = source.history()
    state = state_of(entries)
    if state.version is None:
        raise InputError(f"{source.address} runs nothing yet")
    if state.unproven and not unproven:
        raise InputError(
            f"{state.version} is on probation at {source.address}: no run has kept it. Wait for one, "
            "or --unproven passes it on all the same"
        )
    promotion = entries[state.promoted[state.version] - 1]
    bundle = open_bundle(source.folder_of(state.version, promotion.files), trust)
    return Tried(bundle, promotion, f"{source.address}, entry {promotion.number}")


def pass_on(version: Tried, to: Place, *, why: str = "", again: bool = False, keep: int = 5) -> Promotion:
    """Have another deployment run it.

    Args:
        version: of :func:`tried`.
        to: the deployment, made when missing.
        why: a word for its history.
        again: also where it was rolled back.
        keep: versions to go back to whose files stay, the new one among them; at least 2.

    Returns:
        What came of it; not promoted where it runs already.

    Raises:
        InputError: it was rolled back there.
        ArtifactError: it was changed meanwhile, or the history is broken.
        OutputError: not writable; or another promotion came first.
    """
    deployment, promotion = new_deployment(to), version.promotion
    state = deployment.state()
    before = state.version or ""
    if before == promotion.version:
        return Promotion(promotion.version, before, promoted=False)
    refuse_withdrawn(state, promotion.version, again)
    wanted = Entry(
        1,
        "promote",
        promotion.version,
        before,
        why=why,
        files=promotion.files,
        model=promotion.model,
        checks=promotion.checks,
        origin=version.origin,
    )
    return install(deployment, version.bundle, wanted, keep)
