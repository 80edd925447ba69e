"""Layers on top of each other: what masked attention and per-token functions keep at any depth."""

from . import decoder, depth

CLAIMS = (*depth.CLAIMS, *decoder.CLAIMS)

__all__ = ["CLAIMS"]
