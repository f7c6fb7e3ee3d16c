"""Where public data sets come from and what their folders hold, as their own pages say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Files of a data set.

    Attributes:
        pattern: glob below its folder.
        archive: what they are unpacked from.
        count: files in the official set.
        needed: without them nothing can be read; others serve one purpose (``fog``).
    """

    pattern: str
    archive: str
    count: int
    needed: bool = True


@dataclass(frozen=True)
class Guide:
    """A data set and how to come by it.

    Attributes:
        title: its name.
        page: official page with the downloads.
        licence: in a few words; the page has the terms.
        parts: files, as they lie below one folder once everything is unpacked there.
        description: TOML description for the parts that are trained or scored on; ``ROOT`` stands for the folder.
        notes: sentences about what is particular.
    """

    title: str
    page: str
    licence: str
    parts: tuple[Part, ...]
    description: str
    notes: tuple[str, ...] = ()


_CITY = "leftImg8bit_trainvaltest.zip", "gtFine_trainvaltest.zip"
_DETECTION = "bdd100k_labels_release.zip (Labels of 2018)"
_KITTI = "training"  # of its archives
_FOGGY = "leftImg8bit_trainvaltest_foggy.zip"
_LABELS = (
    Part("gtFine/train/*/*_gtFine_polygons.json", _CITY[1], 2975),
    Part("gtFine/val/*/*_gtFine_polygons.json", _CITY[1], 500),
)

ALL_GUIDES: dict[str, Guide] = {
    "cityscapes": Guide(
        "Cityscapes",
        "https://www.cityscapes-dataset.com/downloads/",
        "own terms, research without commercial use; an account is needed",
        (
            Part("leftImg8bit/train/*/*_leftImg8bit.png", _CITY[0], 2975),
            Part("leftImg8bit/val/*/*_leftImg8bit.png", _CITY[0], 500),
            *_LABELS,
            Part("disparity/train/*/*_disparity.png", "disparity_trainvaltest.zip", 2975, needed=False),
            Part("camera/train/*/*_camera.json", "camera_trainvaltest.zip", 2975, needed=False),
        ),
        'format = "cityscapes"\nroot = "ROOT"\nsplit = "train"\n',
        ("disparity and camera are only for `ptedge data fog`.",),
    ),
    "foggy_cityscapes": Guide(
        "Foggy Cityscapes",
        "https://www.cityscapes-dataset.com/downloads/",
        "as Cityscapes",
        (
            Part("leftImg8bit_foggy/train/*/*_leftImg8bit_foggy_beta_0.02.png", _FOGGY, 2975),
            Part("leftImg8bit_foggy/val/*/*_leftImg8bit_foggy_beta_0.02.png", _FOGGY, 500),
            *_LABELS,
        ),
        'format = "foggy_cityscapes"\nroot = "ROOT"\nsplit = "train"\nbeta = 0.02\n',
        (
            "Unpack it where Cityscapes lies; the labels are the same. beta 0.005 and 0.01 come in the same archive.",
            "`ptedge data fog ROOT` makes such images from Cityscapes, for other densities or where the archive cannot "
            "be had; they are not the published ones.",
        ),
    ),
    "bdd100k": Guide(
        "BDD100K",
        "https://doc.bdd100k.com/download.html",
        "own terms of the data, shown before the download; an account is needed",
        (
            Part("images/100k/train/*.jpg", "100K Images", 70000),
            Part("images/100k/val/*.jpg", "100K Images", 10000),
            Part("labels/bdd100k_labels_images_train.json", _DETECTION, 1),
            Part("labels/bdd100k_labels_images_val.json", _DETECTION, 1),
        ),
        'format = "bdd100k"\nroot = "ROOT"\nannotations = "labels/bdd100k_labels_images_train.json"\n'
        'images = "images/100k/train"\nattributes = { timeofday = "daytime" }\n',
        (
            "The attributes take the day subset; the frames left out are counted, also those that say undefined.",
            "The labels of 2020 (det_20) are read as well, but have other frames than the published numbers.",
        ),
    ),
    "sim10k": Guide(
        "Sim10k (Driving in the Matrix)",
        "https://fcav.engin.umich.edu/projects/driving-in-the-matrix",
        "own terms, without commercial use",
        (
            Part("VOC2012/JPEGImages/*.jpg", "repro_10k_images.tgz", 10000),
            Part("VOC2012/Annotations/*.xml", "repro_10k_annotations.tgz", 10000),
        ),
        'format = "sim10k"\nroot = "ROOT/VOC2012"\nclasses = ["car"]\n',
    ),
    "kitti": Guide(
        "KITTI object detection",
        "https://www.cvlibs.net/datasets/kitti/eval_object.php?obj_benchmark=2d",
        "CC BY-NC-SA 3.0",
        (
            Part(f"{_KITTI}/image_2/*.png", "data_object_image_2.zip", 7481),
            Part(f"{_KITTI}/label_2/*.txt", "data_object_label_2.zip", 7481),
        ),
        'format = "kitti"\nroot = "ROOT"\nclasses = ["car"]\n\n[class_map]\nCar = "car"\n',
    ),
}


def guide_text(name: str, root: str) -> str:
    """What to fetch, where to unpack it, what the folder then looks like, and the next commands.

    Args:
        name: key of :data:`ALL_GUIDES`.
        root: folder of the data.
    """
    guide = ALL_GUIDES[name]
    archives = list(dict.fromkeys(part.archive for part in guide.parts))
    width = max(len(part.pattern) for part in guide.parts) + 2
    tree = [f"  {part.pattern:{width}}{part.count:6,} {'files' if part.count > 1 else 'file'}" for part in guide.parts]
    return "\n".join(
        [
            f"{guide.title}: {guide.page}",
            f"Licence: {guide.licence}. Read the terms on that page.",
            "",
            f"Unpack into {root}: {', '.join(archives)}",
            "",
            f"{root}/",
            *tree,
            "",
            *guide.notes,
            *([""] if guide.notes else []),
            f"Write {name}.toml:",
            "",
            *(f"  {line}" if line else "" for line in guide.description.replace("ROOT", root).splitlines()),
            "",
            f"Then: ptedge data check {root} --layout {name}",
            f"      ptedge data check {name}.toml",
        ]
    )
