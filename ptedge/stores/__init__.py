"""Stores: places that keep objects under keys, a folder or a bucket, behind one interface of five verbs.

Others open one by ``opening``, name its type by ``store``, and move whole folders by ``tree``. A device has all of it.
"""

__all__ = ["opening", "store", "tree"]
