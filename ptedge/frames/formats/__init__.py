"""Headers of image files: size, orientation, bits and number of pictures, read before anything is decoded."""

__all__ = ["header", "isobmff", "jpeg", "plain", "png", "tiff"]
