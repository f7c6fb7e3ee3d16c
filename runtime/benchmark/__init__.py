"""How fast bundles run on this machine, and whether two measurements differ.

``cli`` is the command ``ptedge benchmark``.
"""
