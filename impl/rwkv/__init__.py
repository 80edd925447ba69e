"""RWKV: the mean of RWKV-4 (wkv), the memories of RWKV-6 and RWKV-7 (wkv6, wkv7), and what mixes a token with the one before it."""

from __future__ import annotations

from . import wkv, wkv6, wkv7
from .mixing import channel_mix, token_shift

FORMS = {
    "wkv": (wkv.recurrent, wkv.scan),
    "wkv6": (wkv6.recurrent, wkv6.parallel, wkv6.chunkwise),
    "wkv7": (wkv7.recurrent, wkv7.chunkwise),
}
STEPS = {"wkv": wkv.step, "wkv6": wkv6.step, "wkv7": wkv7.step}

__all__ = ["FORMS", "STEPS", "channel_mix", "token_shift", "wkv", "wkv6", "wkv7"]
