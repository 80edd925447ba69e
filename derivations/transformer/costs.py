"""What training on all prefixes of a sequence costs: one masked pass, or a pass for each prefix."""

from __future__ import annotations

from ..attention.costs import BY_PASSES, BY_STEPS, one_pass, rerun, squares, steps
from ..attention.operators import NOTE, VASWANI, T
from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Statement
from ..kernel.scripts import Direct, Each
from ..kernel.terms import le

training = Statement(And(*one_pass(steps**2), *rerun(squares, squares)), le(0, T))

TRAINING_COST = Claim(
    id="transformer/training-cost",
    title="one masked pass takes T² exponentials, the passes over all T prefixes T(T+1)(2T+1)/6, and products in the same proportion",
    statement=training,
    sources=(
        Source(NOTE, "training: one pass in the place of T", "one head and one layer; exponentials and products as they are written"),
        Source(VASWANI, "section 4, table 1: complexity per layer"),
    ),
    proof=Each((Direct(note="a square of weights"), BY_STEPS, BY_STEPS, BY_PASSES)),
    near_misses=(
        variant(training, "a pass linear in T", And(*one_pass(steps), *rerun(squares, squares))),
        variant(training, "T prefixes for the price of one", And(*one_pass(steps**2), *rerun(6 * steps**2, squares))),
        variant(training, "each prefix as dear as the whole", And(*one_pass(steps**2), *rerun(6 * steps**3, squares))),
    ),
)

CLAIMS = (TRAINING_COST,)
