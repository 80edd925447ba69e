"""Softmax attention: its matrix and row forms, prefixes, appended tokens, and the cache of keys and values."""

from . import forms, kv_cache, prefix, updates
from .operators import DECLARATIONS

CLAIMS = (*forms.CLAIMS, *prefix.CLAIMS, *updates.CLAIMS, *kv_cache.CLAIMS)

__all__ = ["CLAIMS", "DECLARATIONS"]
