"""What watches over an adaptation without labels: monitors, guards, and the choice of the model to deploy.

``supervise`` is what the loop calls; the rest are its rules.
"""
