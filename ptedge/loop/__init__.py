"""``ptedge loop``: rounds of a site, from new frames to a new version everywhere.

A round is a row of steps, each of which leaves one record. What the parts do (adapt, export, promote) is done by their
commands, in processes of their own; nothing here imports them.
"""

__all__ = ["cli"]
