"""The float32 graph in float16 or with int8 layers, and which layers those may be.

``convert`` is what the export command calls.
"""
