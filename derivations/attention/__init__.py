"""Softmax attention: its matrix and row forms, prefixes, appended tokens, old weights, and the cache of keys and values."""

from . import (
    absorption,
    costs,
    forms,
    gradient,
    groups,
    heads,
    kv_cache,
    positions,
    prefix,
    reweights,
    room,
    running,
    sink,
    updates,
    window,
)
from .operators import DECLARATIONS

CLAIMS = (
    *forms.CLAIMS,
    *prefix.CLAIMS,
    *updates.CLAIMS,
    *reweights.CLAIMS,
    *kv_cache.CLAIMS,
    *running.CLAIMS,
    *heads.CLAIMS,
    *groups.CLAIMS,
    *positions.CLAIMS,
    *window.CLAIMS,
    *sink.CLAIMS,
    *absorption.CLAIMS,
    *gradient.CLAIMS,
    *costs.CLAIMS,
    *room.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATIONS"]
