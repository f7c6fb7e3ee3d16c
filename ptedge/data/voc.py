"""Pascal VOC: one XML file an image. Sim10k comes in this format, too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ptedge.data.build import RawBox, RawImage, build_dataset, number_box
from ptedge.data.classes import ClassRules, class_table
from ptedge.data.dataset import Dataset
from ptedge.data.locate import ImageFinder
from ptedge.errors import InputError


def read_voc(
    path: Path, rules: ClassRules, images: Path | None = None, split: str | None = None, kind: str = "voc"
) -> Dataset:
    """Read a folder of VOC annotations.

    Coordinates in VOC count pixels from 1 and include the last one, so a box is xmin - 1, ymin - 1, xmax, ymax here.
    ``difficult`` objects become ignore regions. Images without an XML file are no part of the data. Classes are those
    that occur, sorted, unless the rules list them.

    Args:
        path: folder of XML files, or the folder above ``Annotations``.
        rules: classes wanted.
        images: folder of the images; ``None`` looks beside the XML files and in ``JPEGImages`` and ``images`` around.
        split: name of a list in ``ImageSets/Main``; ``None`` takes every XML file.
        kind: format, for messages (``sim10k`` is VOC as well).

    Raises:
        InputError: no XML file, an unreadable one, or a missing list.
    """
    folder = path / "Annotations" if (path / "Annotations").is_dir() else path
    files = _split_files(folder, split) if split else sorted(folder.glob("*.xml"))
    if not files:
        raise InputError(f"{path} holds no VOC annotation (*.xml)")
    above = folder.parent
    folders = [images] if images else [folder, above / "JPEGImages", above / "images", above, folder / "images"]
    finder = ImageFinder(folders)
    dropped: Counter[str] = Counter()
    raw = [_read_file(file, finder, dropped) for file in files]
    found = sorted({box.name for image in raw for box in image.boxes})
    return build_dataset(path, kind, raw, class_table(found, rules, str(path)), dropped, declared=bool(rules.classes))


def _split_files(folder: Path, split: str) -> Sequence[Path]:
    listing = folder.parent / "ImageSets" / "Main" / f"{split}.txt"
    if not listing.is_file():
        known = sorted(file.stem for file in listing.parent.glob("*.txt"))
        raise InputError(f"split {split!r} needs {listing}, which does not exist. Lists there: {known or 'none'}")
    # a class's list has a second column, 1 or -1
    return [folder / f"{line.split()[0]}.xml" for line in listing.read_text("utf-8").splitlines() if line.strip()]


def _read_file(file: Path, finder: ImageFinder, dropped: Counter[str]) -> RawImage:
    try:
        root = ET.parse(file).getroot()
    except OSError as error:
        raise InputError(f"annotation {file} cannot be read: {error.strerror}") from None
    except ET.ParseError as error:
        raise InputError(f"annotation {file} is not valid XML: {error}") from None
    if root.tag != "annotation":
        raise InputError(f"{file} is no VOC annotation: its root is <{root.tag}>, not <annotation>")
    boxes = []
    for item in root.iter("object"):
        corners = [item.findtext(f"bndbox/{side}", "").strip() for side in ("xmin", "ymin", "xmax", "ymax")]
        box = number_box(corners)
        if box is None:
            dropped["malformed box"] += 1
            continue
        x1, y1, x2, y2 = box
        name = item.findtext("name", "").strip()
        boxes.append(RawBox(name, (x1 - 1, y1 - 1, x2, y2), item.findtext("difficult", "0").strip() == "1"))
    # the name inside the file is often out of date, its stem is not
    name = Path(root.findtext("filename", "").replace("\\", "/")).name or f"{file.stem}.jpg"
    if Path(name).stem != file.stem:
        name = f"{file.stem}{Path(name).suffix or '.jpg'}"
    return RawImage(finder.find(name), _pixels(root, "width"), _pixels(root, "height"), boxes, file.stem)


def _pixels(root: ET.Element, side: str) -> int:
    try:
        return max(0, int(float(root.findtext(f"size/{side}", "0"))))
    except ValueError:
        return 0
