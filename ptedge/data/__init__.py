"""Labelled data: one reader a format, all giving the same lazy :class:`~ptedge.data.dataset.Dataset`.

Others open any format by ``open_dataset``; the modules below are for those who write data, report on it or map
classes.
"""

from ptedge.data.dataset import Dataset, Sample
from ptedge.data.locate import check_images, require_images
from ptedge.data.opening import open_dataset, with_class_names

__all__ = [
    "Dataset",
    "Sample",
    "check_images",
    "classes",
    "coco",
    "coco_results",
    "dataset",
    "documents",
    "locate",
    "open_dataset",
    "report",
    "require_images",
    "values",
    "with_class_names",
]
