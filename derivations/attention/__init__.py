"""Softmax attention: its matrix and row forms, prefixes, appended tokens, old weights, and the cache of keys and values."""

from . import (
    absorption,
    appending,
    costs,
    equivariance,
    forms,
    gradient,
    groups,
    heads,
    kv_cache,
    positions,
    prefix,
    reweights,
    ring,
    room,
    running,
    scale,
    sink,
    updates,
    window,
)
from .operators import DECLARATIONS

CLAIMS = (
    *forms.CLAIMS,
    *scale.CLAIMS,
    *prefix.CLAIMS,
    *updates.CLAIMS,
    *equivariance.CLAIMS,
    *reweights.CLAIMS,
    *kv_cache.CLAIMS,
    *running.CLAIMS,
    *heads.CLAIMS,
    *groups.CLAIMS,
    *positions.CLAIMS,
    *window.CLAIMS,
    *ring.CLAIMS,
    *sink.CLAIMS,
    *absorption.CLAIMS,
    *gradient.CLAIMS,
    *costs.CLAIMS,
    *room.CLAIMS,
    *appending.CLAIMS,
)

__all__ = ["CLAIMS", "DECLARATIONS"]
