"""Generated scenes as data to try commands on: ``python -m ptedge.samples.draw FOLDER``."""

from __future__ import annotations

from pathlib import Path

import click

from .scenes import DOMAINS
from .write import write_coco

SOURCE, TARGET = "clear", "fog_camera"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--source", type=click.IntRange(2), default=60, show_default=True, help="Labelled clear scenes.")
@click.option("--target", type=click.IntRange(2), default=30, show_default=True, help="Scenes in fog.")
@click.option("--val", type=click.IntRange(2), default=24, show_default=True, help="Other scenes in fog, for scoring.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def draw(folder: Path, source: int, target: int, val: int, seed: int) -> None:
    """Write FOLDER/source, target and val: images and annotations.json (COCO). Labels of target are for an oracle."""
    write_coco(folder / "source", DOMAINS[SOURCE], source, 4 * seed)
    write_coco(folder / "target", DOMAINS[TARGET], target, 4 * seed + 1)
    write_coco(folder / "val", DOMAINS[TARGET], val, 4 * seed + 2)


if __name__ == "__main__":
    draw()
