"""What watches over an adaptation without labels: monitors, guards, and the choice of the model to deploy.

The loop calls ``supervise``, settings come from the modules that use them; ``monitor`` also counts pseudo boxes for
the log.
"""

__all__ = ["choose", "label_offset", "limits", "monitor", "monitor_set", "record", "supervise"]
