"""Layers on top of each other: what masked attention and per-token functions keep at any depth."""

from . import depth

CLAIMS = (*depth.CLAIMS,)

__all__ = ["CLAIMS"]
