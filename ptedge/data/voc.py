"""Pascal VOC: one XML file an image. Sim10k comes in this format, too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ptedge.data.build import MALFORMED, Counts, RawBox, RawImage, build_dataset, image_pixels
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder, is_picture, pictures_in
from ptedge.data.parsing.documents import load_xml
from ptedge.data.parsing.values import flag, number_box, shown
from ptedge.data.splits import Use, choose_list, listed_names
from ptedge.errors import InputError

_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read_voc(
    path: Path,
    rules: ClassRules,
    images: Path | None = None,
    split: str | None = None,
    kind: str = "voc",
    use: Use = "look",
) -> Dataset:
    """Read a folder of VOC annotations, its sub-folders included.

    Coordinates in VOC count pixels from 1 and include the last one, so a box is xmin - 1, ymin - 1, xmax, ymax here.
    ``difficult`` objects become ignore regions. Images without an XML file are no part of the data. Classes are those
    that occur, sorted, unless the rules list them.

    Args:
        path: folder of XML files, or the folder above ``Annotations``.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the XML files and in ``JPEGImages`` and ``images`` around.
        split: name of a list in ``ImageSets/Main``; ``None`` takes every XML file, or what ``use`` needs of the lists.
        kind: format, for messages (``sim10k`` is VOC as well).
        use: what the data are for.

    Raises:
        InputError: no XML file, an unreadable one, or a missing list.
    """
    folder = path / "Annotations" if (path / "Annotations").is_dir() else path
    above = folder.parent
    files = {_stem(file, folder): file for file in sorted(folder.rglob("*.xml")) if not file.name.startswith(".")}
    if not files:
        raise InputError(f"{path} holds no VOC annotation (*.xml)")
    listing = choose_list([above / "ImageSets" / "Main", above / "ImageSets"], split, use, str(path))
    if listing is not None:
        files = _listed(listing, files, folder)
    folders = [images] if images else [folder, above / "JPEGImages", above / "images", above, folder / "images"]
    counts = Counts()
    finder = ImageFinder(folders, counts, [images or above / "JPEGImages", *([] if images else [above / "images"])])
    roots = [load_xml(file) for file in files.values()]
    for file, root in zip(files.values(), roots, strict=True):
        if root.tag != "annotation":
            raise InputError(f"{file} is no VOC annotation: its root is <{root.tag[:80]}>, not <annotation>")
    found = finder.find_all([_image_names(stem, root, finder, counts) for stem, root in zip(files, roots, strict=True)])
    raw = []
    for stem, root, image in zip(files, roots, found, strict=True):
        width, height = image_pixels(root.findtext("size/width"), root.findtext("size/height"), counts)
        raw.append(RawImage(image, width, height, _boxes(root, counts), stem))
    if listing is None:
        rest = sum(len(set(pictures_in(place)) - set(found)) for place in {file.parent for file in found})
        counts.notes["image without an XML file (no part of the data)"] += rest
    names = sorted({box.name for image in raw for box in image.boxes})
    table = class_table(names, rules, str(path))
    named = listing.stem if listing is not None else None
    return build_dataset(path, kind, raw, table, counts, declared=bool(rules.classes), split=named)


def _stem(file: Path, folder: Path) -> str:
    """Name of an annotation without its suffix, with its sub-folders: ``left/f``."""
    return file.relative_to(folder).as_posix().removesuffix(file.suffix)


def _listed(listing: Path, files: dict[str, Path], folder: Path) -> dict[str, Path]:
    chosen = {}
    for name in listed_names(listing, files):
        stem = PurePosixPath(name.replace("\\", "/")).as_posix()
        if stem not in files and (is_picture(stem) or stem.endswith(".xml")):
            stem = stem.rpartition(".")[0]
        if stem not in files:
            raise InputError(f"{listing} lists {shown(name)}, but {folder} has no XML file of that name")
        chosen[stem] = files[stem]
    if not chosen:
        raise InputError(f"{listing} lists no image")
    return chosen


def _image_names(stem: str, root: ET.Element, finder: ImageFinder, counts: Counts) -> Sequence[str]:
    """Names of the image: that of the XML file, then that inside it, which is often out of date."""
    inside = root.findtext("filename", "").strip()
    named = PurePosixPath(inside.replace("\\", "/"))
    suffix = named.suffix if is_picture(named.name) else ".jpg"
    own = f"{stem}{suffix}"
    if not inside or named.name == PurePosixPath(own).name:
        return (own,)
    if finder.has(own) and finder.has(inside):
        counts.notes["XML file whose <filename> is another image that is there (that of the XML's own name taken)"] += 1
    return own, inside


def _boxes(root: ET.Element, counts: Counts) -> list[RawBox]:
    boxes = []
    for item in root.iter("object"):
        name, hard = item.findtext("name", "").strip(), flag(item.findtext("difficult"))
        bounds = item.findall("bndbox")
        box = number_box([bounds[0].findtext(side) for side in _CORNERS]) if len(bounds) == 1 else None
        if box is None:
            counts.dropped[MALFORMED] += 1
        elif not name:
            counts.dropped["object without a name"] += 1
        elif hard is None:
            counts.dropped["difficult is neither 0 nor 1"] += 1
        else:
            x1, y1, x2, y2 = box
            counts.notes["corner at 0, where VOC counts from 1"] += x1 == 0 or y1 == 0
            boxes.append(RawBox(name, (x1 - 1, y1 - 1, x2, y2), hard))
    return boxes
