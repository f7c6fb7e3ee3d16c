"""Training: pretraining on source, mutual learning on target. Needs the ``train`` extra.

The command line loads ``cli``, Python ``api``; the packages within share the settings, optimiser, run folder and
processes named below.
"""

__all__ = ["api", "cli", "config", "distributed", "optim", "run_folder", "state", "validate"]
