"""Training: pretraining on source, mutual learning on target. Needs the ``train`` extra.

The command line loads ``cli``; the packages within share the settings, optimiser, run folder and processes named
below.
"""

__all__ = ["cli", "config", "distributed", "optim", "run_folder", "state", "validate"]
