"""Layers on top of each other: what masked attention and per-token functions keep at any depth."""

from . import costs, decoder, depth, memory, rows, shapes

CLAIMS = (*rows.CLAIMS, *depth.CLAIMS, *decoder.CLAIMS, *memory.CLAIMS, *shapes.CLAIMS, *costs.CLAIMS)

__all__ = ["CLAIMS"]
