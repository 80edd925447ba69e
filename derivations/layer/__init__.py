"""A layer from one declaration: what kind it is, the theorems about it, and what it costs."""

from .classify import Classification, Read, Update, classify
from .costs import Costs, costs
from .declare import LayerError, layer
from .derive import derive
from .side import KINDS, Outer, Side

__all__ = ["KINDS", "Classification", "Costs", "LayerError", "Outer", "Read", "Side", "Update", "classify", "costs", "derive", "layer"]
