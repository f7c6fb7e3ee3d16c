"""``ptedge shift``: labelled pictures under fog, night, rain and blur, labels as they were.

Unlike two real places, both sides of this shift were labelled by the
same hand, so what adaptation does not reach here is not a matter of how boxes are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from ptedge.data import Dataset, Sample, open_dataset
from ptedge.data.coco import write_coco
from ptedge.data.report import with_sizes
from ptedge.errors import InputError
from ptedge.files import make_output_folder, write_json
from ptedge.folders import set_file_aside
from ptedge.frames.images import read_image

from .write import write_image

# what comes together in one picture, each as often as the others
RECIPES: tuple[tuple[str, ...], ...] = (("fog",), ("fog", "blur"), ("night", "blur"), ("rain", "blur"))


@dataclass(frozen=True)
class Shift:
    """What is done to pictures.

    Attributes:
        recipes: effects that come together; a picture gets one recipe by chance.
        weakest: least strength, above 0.
        strongest: greatest strength, at most 1.
        seed: of recipes, strengths and what the effects draw; the same picture number gets the same with it.
    """

    recipes: tuple[tuple[str, ...], ...] = RECIPES
    weakest: float = 0.3
    strongest: float = 0.9
    seed: int = 0


def draw_effects(shift: Shift, index: int) -> list[tuple[str, float]]:
    """Effects and strengths of one picture; the same whatever pictures there are beside it.

    Args:
        shift: what to draw from.
        index: position of the picture in its set.
    """
    rng = np.random.default_rng([shift.seed, index])
    recipe = shift.recipes[int(rng.integers(len(shift.recipes)))]
    return [(name, round(float(rng.uniform(shift.weakest, shift.strongest)), 3)) for name in recipe]


def write_shifted(dataset: Dataset, annotations: Path, images: Path, shift: Shift) -> Dataset:
    """Write every picture of a data set under its effects, the labels, and what was done to which.

    Args:
        dataset: labelled pictures.
        annotations: COCO json to write; ``NAME.shift.json`` beside it records effect and strength of each picture.
        images: folder for the pictures, as JPEG under their own names.
        shift: what is done.

    Returns:
        The shifted data set.

    Raises:
        InputError: a picture cannot be read, or two have one name.
        OutputError: something cannot be written.
    """
    from .effects import apply_effects

    make_output_folder(images)
    samples: list[Sample] = []
    done: list[dict[str, object]] = []
    names: set[str] = set()
    for index, sample in enumerate(with_sizes(dataset).samples):
        path = images / f"{sample.path.stem}.jpg"
        if path.name in names:
            raise InputError(f"{dataset.root} has two pictures that would both become {path}. Rename one of them")
        names.add(path.name)
        effects = draw_effects(shift, index)
        write_image(path, apply_effects(read_image(sample.path), effects, seed=shift.seed * 1_000_003 + index))
        samples.append(replace(sample, path=path))
        done.append({"file": path.name, "effects": [{"kind": name, "strength": power} for name, power in effects]})
    shifted = replace(dataset, root=annotations, format="coco", samples=tuple(samples))
    description = f"{dataset.root.name} under a made shift, seed {shift.seed}"
    write_coco(shifted, annotations, description=description, licence="that of the pictures it was made from")
    record = {"seed": shift.seed, "weakest": shift.weakest, "strongest": shift.strongest, "images": done}
    write_json(annotations.with_suffix(".shift.json"), record)
    return shifted


def _recipes(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[tuple[str, ...], ...]:
    known = {"fog", "night", "rain", "blur"}
    recipes = tuple(tuple(name.strip() for name in recipe.split("+")) for recipe in value.split(","))
    for recipe in recipes:
        for name in recipe:
            if name not in known:
                raise click.BadParameter(f"{name!r} is no effect; there are {', '.join(sorted(known))}")
    return recipes


@click.command()
@click.argument("data", metavar="DATA", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT.json", type=click.Path(path_type=Path))
@click.option("--images", type=click.Path(path_type=Path), help="Folder for the pictures; else OUT without its suffix.")
@click.option("--split", help="Part of DATA to take, where it has several.")
@click.option(
    "--recipes",
    callback=_recipes,
    default=",".join("+".join(recipe) for recipe in RECIPES),
    show_default=True,
    help="Effects (fog, night, rain, blur) joined by +; a picture gets one of these by chance.",
)
@click.option("--weakest", type=click.FloatRange(0, 1, min_open=True), default=0.3, show_default=True)
@click.option("--strongest", type=click.FloatRange(0, 1, min_open=True), default=0.9, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def shift(
    data: Path,
    out: Path,
    images: Path | None,
    split: str | None,
    recipes: tuple[tuple[str, ...], ...],
    weakest: float,
    strongest: float,
    seed: int,
) -> dict[str, Any]:
    """Write the pictures of DATA under fog, night, rain or blur, with their labels as OUT.json (COCO).

    \b
    Example:
      ptedge shift target/val.json foggy/val.json --seed 1
    """
    if weakest > strongest:
        raise click.UsageError(f"--weakest {weakest:g} is above --strongest {strongest:g}")
    set_file_aside(out)
    dataset = open_dataset(data, split=split)
    wanted = Shift(recipes, weakest, strongest, seed)
    shifted = write_shifted(dataset, out, images or out.with_suffix(""), wanted)
    click.echo(f"wrote {out}: {len(shifted)} images, {shifted.num_boxes} boxes", err=True)
    return {"out": str(out), "images": len(shifted), "boxes": shifted.num_boxes}
