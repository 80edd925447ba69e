"""RWKV: weighted averages that decay (RWKV-4), and states that are matrices (RWKV-6 and RWKV-7)."""

from . import growth, linear, mixing, stable, wkv, wkv6, wkv7
from .operators import DECLARATIONS, WKV, WKV6, WKV7

CLAIMS = (*wkv.CLAIMS, *stable.CLAIMS, *linear.CLAIMS, *mixing.CLAIMS, *wkv6.CLAIMS, *wkv7.CLAIMS, *growth.CLAIMS)

__all__ = ["CLAIMS", "DECLARATIONS", "WKV", "WKV6", "WKV7"]
