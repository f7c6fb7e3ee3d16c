"""Unlabelled frames from files, videos and cameras: found, opened, decoded, numbered, and read anew after faults.

A consumer opens a source (``source``) or an index for training (``index``); the rest tells what a source is
and how it fares.
"""
