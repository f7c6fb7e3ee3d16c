"""The command ``ptedge bundle``: bundles into a store and out of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..click_options import RATE, TRUST

PATH = click.Path(path_type=Path)


def is_oci(store: str, **of_stores: object) -> bool:
    """Whether an address is one of a registry.

    Args:
        store: as the user typed it.
        of_stores: values of options that a registry has not.

    Raises:
        click.UsageError: one of them is given.
    """
    if not store.startswith("oci://"):
        return False
    if given := [name for name, value in of_stores.items() if value is not None]:
        raise click.UsageError(f"--{given[0]} is for buckets and folders; a registry takes tags and digests")
    return True


@click.group()
def bundle() -> None:
    """Send a bundle to a store, or fetch one from there.

    \b
    Example:
      ptedge bundle push bundle s3://fleet/models
    """


@bundle.command()
@click.argument("folder", metavar="BUNDLE", type=PATH)
@click.argument("store")
@RATE
@TRUST
def push(folder: Path, store: str, rate: int | None, trust: tuple[Path, ...]) -> dict[str, Any]:
    """Put a bundle into a store, with its engines and signatures, under a name after its content.

    STORE is a folder, s3://bucket/place, or oci://host/repository:tag of a registry of containers (docs/stores.md).
    Interrupted, the same command goes on.

    \b
    Examples:
      ptedge bundle push bundle s3://fleet/models
      ptedge bundle push bundle oci://registry.example/models/car:v7
    """
    from ptedge.artifacts.trust import Trust
    from ptedge.stores.opening import open_store

    from .bundles import push_bundle
    from .oci import push_oci

    if is_oci(store, rate=rate):
        moved = push_oci(folder, store, Trust.read(trust))
    else:
        moved = push_bundle(folder, open_store(store, rate), Trust.read(trust))
    click.echo(f"version {moved.version}: {moved.files} files, {moved.new} sent", err=True)
    return {"store": store, **asdict(moved)}


@bundle.command()
@click.argument("store")
@click.argument("out", type=PATH)
@click.option("--version", metavar="NAME", help="Which one.  [default: the one that was put last]")
@RATE
@TRUST
def pull(store: str, out: Path, version: str | None, rate: int | None, trust: tuple[Path, ...]) -> dict[str, Any]:
    """Fetch a bundle into a new folder, which appears when all of it is there and checked.

    \b
    Examples:
      ptedge bundle pull s3://fleet/models new --trust owner.pub
      ptedge promote new --to deployment --frames field
    """
    from ptedge.artifacts.trust import Trust
    from ptedge.stores.opening import open_store

    from .bundles import pull_bundle
    from .oci import pull_oci

    if is_oci(store, rate=rate, version=version):
        moved = pull_oci(store, out, Trust.read(trust))
    else:
        moved = pull_bundle(open_store(store, rate), out, version, Trust.read(trust))
    click.echo(f"version {moved.version}: {moved.files} files, into {out}", err=True)
    return {"store": store, "out": str(out), **asdict(moved)}
