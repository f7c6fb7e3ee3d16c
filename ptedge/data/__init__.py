"""Labelled data: one reader a format, all giving the same lazy :class:`~ptedge.data.dataset.Dataset`.

Others open any format by ``open_dataset``; the modules below are for those who describe or write data, report on it or
map classes.
"""

from ptedge.data.dataset import Dataset, Sample
from ptedge.data.locate import check_images, require_images
from ptedge.data.opening import open_dataset, with_class_names
from ptedge.data.splits import Use

__all__ = [
    "Dataset",
    "Sample",
    "Use",
    "check_images",
    "classes",
    "coco",
    "coco_results",
    "dataset",
    "description",
    "locate",
    "open_dataset",
    "report",
    "require_images",
    "splits",
    "with_class_names",
]
