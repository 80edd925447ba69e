"""Layers on top of each other: what masked attention and per-token functions keep at any depth."""

from . import costs, decoder, depth, greedy, memory, rows, shapes

CLAIMS = (*rows.CLAIMS, *depth.CLAIMS, *decoder.CLAIMS, *greedy.CLAIMS, *memory.CLAIMS, *shapes.CLAIMS, *costs.CLAIMS)

__all__ = ["CLAIMS"]
