"""Options of the commands that run a model on the workshop's machine."""

from __future__ import annotations

from pathlib import Path

import click

from ptedge.backends.runner import BACKENDS

BACKEND = click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="What runs a model that is no checkpoint.",
)
THREADS = click.option("--threads", type=click.IntRange(min=1), help="CPU threads of the model.")
TRUST = click.option(
    "--trust",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Public key that a bundle must be signed with; again for more.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
