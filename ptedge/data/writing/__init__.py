"""Labelled data written as COCO, Pascal VOC, YOLO or KITTI, with what each format cannot hold counted."""

from ptedge.data.writing.convert import Format, ImageWay, convert_dataset, images_folder

__all__ = ["Format", "ImageWay", "convert_dataset", "images_folder"]
