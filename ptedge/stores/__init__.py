"""Stores: places that keep objects under keys, a folder or a bucket, behind one interface of five verbs.

Others open one by ``opening``, name its type by ``store``, move whole folders by ``tree``, and read one that may be
away by ``copied``. A device has all of it.
"""

__all__ = ["copied", "folder", "opening", "store", "tree"]
