"""Softmax attention: its matrix and row forms, prefixes, appended tokens, old weights, and the cache of keys and values."""

from . import forms, kv_cache, prefix, reweights, running, updates
from .operators import DECLARATIONS

CLAIMS = (
    *forms.CLAIMS,
    *prefix.CLAIMS,
    *updates.CLAIMS,
    *reweights.CLAIMS,
    *kv_cache.CLAIMS,
    *running.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATIONS"]
