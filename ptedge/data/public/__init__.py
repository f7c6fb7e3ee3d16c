"""Public data sets: where they come from, what their folders hold, and fog for Cityscapes."""

from ptedge.data.public.fog import visibility
from ptedge.data.public.foggy import FogOptions, fog_cityscapes, fog_depths
from ptedge.data.public.guides import ALL_GUIDES, guide_text
from ptedge.data.public.layout import missing_parts, recognised

__all__ = [
    "ALL_GUIDES",
    "FogOptions",
    "fog_cityscapes",
    "fog_depths",
    "guide_text",
    "missing_parts",
    "recognised",
    "visibility",
]
