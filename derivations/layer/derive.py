"""The theorems about a declaration: which there are follows from what kind it is; each is proved for that declaration."""

from __future__ import annotations

from ..claim import Claim
from ..kernel.formulas import Declaration
from .costs import step_cost
from .gradient import gradient_step
from .outputs import outputs
from .resumption import products
from .resumption import split as resumed
from .scan import scan
from .sequence import chunkwise, split, unrolled, update
from .stability import stable
from .subject import subjects

AFFINE = (update, unrolled, split, chunkwise, scan, outputs, gradient_step, stable)
OTHER = (products, resumed)


def derive(declaration: Declaration) -> tuple[Claim, ...]:
    """The claims that follow from a declaration, each with a proof and near misses, with ids ``operator/…``.

    Of an affine update H_t = L H_{t-1} R + U: its pieces, the state unrolled, cut and resumed, chunk after chunk and as a scan;
    all outputs at once as a masked matrix times values, or as a sum, where the read-out is linear; for a correction of what a
    key finds the loss whose gradient step it is; for numbers, diagonal matrices and such corrections the condition under which
    nothing grows, and for products of these one that is sufficient. No such condition is claimed of states that use each other:
    one token may make some state longer although all tokens together forget it. Of any other update: that a run is cut and
    resumed, and that the update is not affine where it is not. Of all: what a token costs.

    With several states the ids end in the state's name. What is derived is checked by ``verify_claim``, as all claims are;
    claims that are not registered need ``among=derive(declaration)``.
    """
    found = [make(s) for s in subjects(declaration) for make in (AFFINE if s.update.affine else OTHER)]
    return tuple(c for c in (*found, step_cost(declaration)) if c is not None)
