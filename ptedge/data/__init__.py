"""Labelled data: one reader a format, all giving the same lazy :class:`~ptedge.data.dataset.Dataset`."""

from ptedge.data.dataset import Dataset, Sample
from ptedge.data.locate import check_images, require_images
from ptedge.data.opening import open_dataset, with_class_names

__all__ = ["Dataset", "Sample", "check_images", "open_dataset", "require_images", "with_class_names"]
