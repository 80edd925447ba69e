"""How faults are planted in right forms, and how a form is held to the law that must see them."""

from functools import wraps
from inspect import signature

import torch

from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.running import run_law

LAWS = {law.name: law for law in laws()}


def faulty(change):
    """Make of change(base, call) a form with the base's own arguments, of which ``call`` has those that are given."""

    def plant(base):
        arguments = signature(base)

        @wraps(base)
        def form(*given, **call):
            return change(base, arguments.bind(*given, **call).arguments)

        return form

    plant.__name__ = change.__name__
    return plant


class Backward(torch.autograd.Function):
    """The identity, with its gradient times a factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def louder(x):
    """The identity, with a gradient that is 0.4 % too large."""
    return Backward.apply(x, 1.004)


def misread(x):
    """The tensor read as if it were contiguous, from the start of its memory, where that has so much."""
    stored = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    return x.as_strided(x.shape, torch.empty(x.shape).stride(), x.storage_offset()) if x.numel() <= stored else x


def checked(law, name, form, scale, examples=12):
    """What a law says of a form at one scale."""
    return run_law(LAWS[law], operator(name), form, examples=examples, seed=0, scales=(scale,), minimise=False)
