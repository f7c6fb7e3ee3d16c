"""ptedge: keep an object detector good where it is deployed."""

__version__ = "0.1.0"
__all__ = ["__version__"]
