"""CVAT for images 1.1: ``annotations.xml`` and ``images/``; score and sigma are attributes of each box."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from ptedge.files import atomic_write

from .frames import PrelabelledFrame, Prelabels

ATTRIBUTES = ("score", "sigma_x1", "sigma_y1", "sigma_x2", "sigma_y2")


def write_cvat(frames: Prelabels, out: Path) -> None:
    """Write what a task's "Upload annotations", CVAT 1.1, takes, zipped or the XML alone.

    Args:
        frames: to write.
        out: empty folder.

    Raises:
        OutputError: not writable, or disk full.
    """
    (out / "images").mkdir()
    with atomic_write(out / "annotations.xml", "w") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n')
        file.write(_meta(frames))
        for number, frame in enumerate(frames):
            frames.place_image(frame.name, out / "images" / frame.name)
            file.write(_image(number, frame, frames.class_names))
        file.write("</annotations>\n")


def _meta(frames: Prelabels) -> str:
    """The head: classes with their attributes, which the task must have too."""
    attributes = "".join(
        f"<attribute><name>{name}</name><mutable>False</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
        for name in ATTRIBUTES
    )
    rest = f"<type>rectangle</type><attributes>{attributes}</attributes>"
    labels = "".join(f"        <label><name>{escape(name)}</name>{rest}</label>\n" for name in frames.class_names)
    name, size = escape(frames.folder.path.resolve().name), frames.folder.images
    return (
        f"  <meta>\n    <task>\n      <name>{name}</name>\n      <size>{size}</size>\n      <mode>annotation</mode>\n"
        f"      <labels>\n{labels}      </labels>\n    </task>\n  </meta>\n"
    )


def _image(number: int, frame: PrelabelledFrame, class_names: tuple[str, ...]) -> str:
    head = f'  <image id="{number}" name={quoteattr(frame.name)} width="{frame.width}" height="{frame.height}">\n'
    boxes = []
    found = frame.detections
    for i in range(len(found)):
        x1, y1, x2, y2 = (f"{float(v):.2f}" for v in found.boxes[i])
        values = (f"{float(found.scores[i]):.4f}", *(f"{float(v):.2f}" for v in found.sigma[i]))
        inner = "".join(
            f'<attribute name="{name}">{value}</attribute>' for name, value in zip(ATTRIBUTES, values, strict=True)
        )
        boxes.append(
            f'    <box label={quoteattr(class_names[int(found.labels[i])])} source="auto" occluded="0" '
            f'xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}" z_order="0">{inner}</box>\n'
        )
    return head + "".join(boxes) + "  </image>\n"
