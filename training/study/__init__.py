"""Tables of runs: baselines and variants over seeds, run, scored and compared.

``cli`` is the command ``ptedge study``; everything else serves it.
"""
