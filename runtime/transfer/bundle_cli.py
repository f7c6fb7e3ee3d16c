"""The command ``ptedge bundle``: bundles into a store and out of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..click_options import RATE, TRUST

PATH = click.Path(path_type=Path)


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

    STORE is a folder or s3://bucket/place (docs/stores.md). Interrupted, the same command goes on.

    \b
    Example:
      ptedge bundle push bundle s3://fleet/models
    """
    from ptedge.artifacts.trust import Trust
    from ptedge.stores.opening import open_store

    from .bundles import push_bundle

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

    moved = pull_bundle(open_store(store, rate), out, version, Trust.read(trust))
    click.echo(f"version {moved.version}: {moved.files} files, into {out}", err=True)
    return {"store": store, "out": str(out), **asdict(moved)}
