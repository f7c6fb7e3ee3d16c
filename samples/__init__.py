"""Generated street scenes, the demo, and one TOML for each command.

The command line loads ``demo``, and ``python -m`` runs ``draw``; nothing else imports from here.
"""

__all__ = ["demo", "draw"]
