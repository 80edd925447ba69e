"""Softmax attention: its matrix and row forms, prefixes, appended tokens, old weights, and the cache of keys and values."""

from . import forms, kv_cache, prefix, reweights, updates
from .operators import DECLARATIONS

CLAIMS = (*forms.CLAIMS, *prefix.CLAIMS, *updates.CLAIMS, *reweights.CLAIMS, *kv_cache.CLAIMS)

__all__ = ["CLAIMS", "DECLARATIONS"]
