"""Tables of runs: baselines and variants over seeds, run, scored and compared.

The command line loads ``cli``, and curves draw what ``plot`` makes of a study; everything else serves the command.
"""

__all__ = ["cli", "plot", "result", "score"]
