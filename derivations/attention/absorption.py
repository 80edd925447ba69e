"""Keys and values made from one latent vector a token: the maps that make them are absorbed by the query and the output.

    k_j = R_j A c_j        v_j = B c_j        with R_j a rotation by position, or none
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, ForAll, Statement
from ..kernel.scripts import Direct, Each, Given
from ..kernel.terms import Block, Exp, Eye, Sum, Term, indices, le, matrices, matrix, vectors
from .operators import d_k, d_v, i, j, q, t

DEEPSEEK = "DeepSeek-AI, DeepSeek-V2, arXiv 2405.04434"
d_c, d_r, d_o = indices("d_c d_r d_o")
c = vectors("c", d_c)  # what is cached: one latent vector a token
A, B, W = matrix("A", d_k, d_c), matrix("B", d_v, d_c), matrix("W", d_o, d_v)
R = matrices("R", d_k, d_k)
p, r = vectors("p", d_r), vectors("r", d_r)  # a second part of query and key, which may be rotated
unrotated = Assumption("keys that are not rotated", ForAll(Equation(R[i], Eye(d_k)), i, 1, t), solve={R[i]: Eye(d_k)})


def weighed(logit: Term, value: Term) -> Term:
    """The mean of the values, weighed by the exponentials of the logits."""
    return Sum(Exp(logit) * value, j, 1, t) / Sum(Exp(logit), j, 1, t)


score = (R[t] * q[t]).T * (R[j] * (A * c[j]))
made = W * weighed(score, B * c[j])
with_rotated = W * weighed(q[t].T * (A * c[j]) + p[t].T * r[j], B * c[j])
both = Block(((A.T * q[t]).T, p[t].T)) * Block((c[j],), (r[j],))


def absorbed(query: Term, output: Term, logit: Term = both) -> And:
    """Attention to the latent vectors themselves; and beside a part of the key that is cached as it is."""
    plain = output * weighed(query.T * c[j], c[j])
    return And(Equation(made, plain), Equation(with_rotated, W * B * weighed(logit, c[j])))


absorption = Statement(absorbed(A.T * q[t], W * B), le(1, t), (unrotated,))
SAME = (Given(unrotated.name),)

ABSORPTION = Claim(
    id="attention/absorption",
    title="maps from a latent vector to key and value are absorbed by query and output, where keys are not rotated; "
    "a rotated part stays apart",
    statement=absorption,
    as_written=Statement(absorption.conclusion, absorption.where),
    expected="qualified",
    sources=(
        Source(DEEPSEEK, "section 2.1.2: W_UK is absorbed into W_Q, and W_UV into W_O", "one head; with a rotation between them it is not"),
        Source(DEEPSEEK, "section 2.1.3, decoupled rotary embedding", "the second part of the statement"),
    ),
    proof=Each((Direct(SAME, "qᵀ(Ac) = (Aᵀq)ᵀc, and W Σ (Bc) = (WB) Σ c"), Direct(note="the second part is added to the score"))),
    near_misses=(
        variant(absorption, "rotated keys", drop=unrotated.name),
        variant(absorption, "the output is not mapped back", absorbed(A.T * q[t], W * B, q[t].T * (A * c[j]))),
        variant(absorption, "the rotated part is mapped twice", absorbed(A.T * q[t], W * B, both + p[t].T * r[j])),
    ),
)

CLAIMS = (ABSORPTION,)
