"""HiPPO: the coefficients of a history in orthogonal polynomials, and the equations that they obey.

Sources: Gu, Dao, Ermon, Rudra, Ré, "HiPPO", arXiv 2008.07669; Gu, Johnson, Timalsina, Rudra, Ré, "How to Train Your HiPPO",
arXiv 2206.12037; Voelker, Kajić, Eliasmith, "Legendre Memory Units", NeurIPS 2019.
"""

from . import (
    bumps,
    convolution,
    decayed,
    delays,
    matrices,
    orthogonal,
    pade,
    polynomials,
    projection,
    rescaled,
    scaled,
    transfer,
    translated,
)

CLAIMS = (
    *projection.CLAIMS,
    *polynomials.CLAIMS,
    *orthogonal.CLAIMS,
    *scaled.CLAIMS,
    *translated.CLAIMS,
    *matrices.CLAIMS,
    *rescaled.CLAIMS,
    *convolution.CLAIMS,
    *decayed.CLAIMS,
    *delays.CLAIMS,
    *bumps.CLAIMS,
    *pade.CLAIMS,
    *transfer.CLAIMS,
)

__all__ = ["CLAIMS"]
