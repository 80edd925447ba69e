"""Declarations are read as what they are, however the update is written."""

import pytest

from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import (
    Diag,
    Exp,
    Eye,
    Hadamard,
    Inverse,
    Num,
    Where,
    indices,
    le,
    matrices,
    matrix,
    named,
    recurrence,
    scalars,
    vector,
    vectors,
)  # fmt: skip
from isoform.derivations.layer.classify import NOT_AFFINE, TWO_SIDED, UNREAD, classify
from isoform.derivations.layer.functions import entrywise
from isoform.derivations.registry import architectures, declarations

m, n = indices("m n")
(t,) = indices("t")
q, k, k2, v, a, e = vectors("q", n), vectors("k", n), vectors("p", n), vectors("v", m), vectors("a", n), vectors("e", m)
beta, gamma, W = scalars("beta"), scalars("gamma"), matrices("W", m, n)
H0, h0 = matrix("H0", m, n), vector("h0", n)


def declared(step, start=H0, read=lambda H: H[t] * q[t]):
    state = recurrence("H", start, step)
    return classify(Declaration("x", {}, read(state), t, state, start))


def the(step, start=H0):
    return declared(step, start, lambda H: H[t]).updates[0]


@pytest.mark.parametrize(
    ("step", "kind", "says"),
    [
        (lambda t, H: H + v[t] * k[t].T, "identity", "identity"),
        (lambda t, H: gamma[t] * H + v[t] * k[t].T, "scalar", "scalar on the right"),
        (lambda t, H: H * Diag(a[t]) + v[t] * k[t].T, "diagonal", "diagonal on the right"),
        (lambda t, H: Diag(e[t]) * H * Diag(a[t]), "diagonal", "diagonal on the left and diagonal on the right"),
        (lambda t, H: H - beta[t] * (H * k[t] - v[t]) * k[t].T, "rank one", "identity plus rank one on the right"),
        (lambda t, H: gamma[t] * H * (Eye(n) - beta[t] * k[t] * k[t].T), "rank one", "scalar plus rank one on the right"),
        (lambda t, H: H * Diag(a[t]) * (Eye(n) - k[t] * k[t].T), "rank one", "diagonal plus rank one on the right"),
        (lambda t, H: H * (Eye(n) - k[t] * k[t].T) * (Eye(n) - k2[t] * k2[t].T), "low rank", "identity plus low rank on the right"),
        (lambda t, H: H * Exp(gamma[t] * Diag(a[t])), "diagonal", "diagonal on the right"),
        (lambda t, H: H * Inverse(Eye(n) + k[t] * k[t].T), "general", "general on the right"),
        (lambda t, H: v[t] * k[t].T, UNREAD, "nothing of the state before is left"),
        (lambda t, H: H + Diag(e[t]) * H * Diag(a[t]), TWO_SIDED, "no single product"),
        (lambda t, H: Hadamard(v[t] * a[t].T, H), "diagonal", "diagonal on the left and diagonal on the right"),
        (lambda t, H: Hadamard(2 * gamma[t] * v[t] * (a[t].T * Diag(k[t])), H), "diagonal", "on the left and diagonal on the right"),
        (lambda t, H: Hadamard(W[t], H), UNREAD, "an entrywise product with a matrix that is no column times a row: W_t ⊙ H_{t−1}"),
        (lambda t, H: Hadamard(H, H), NOT_AFFINE, "entrywise"),
        (lambda t, H: H + Exp(v[t].T * H * k[t]) * v[t] * k[t].T, NOT_AFFINE, "an exponential of the state: exp(v_tᵀ H_{t−1} k_t)"),
        (lambda t, H: H / (1 + v[t].T * H * k[t]), NOT_AFFINE, "both depend on the state"),
    ],
)
def test_kinds(step, kind, says):
    u = the(step)
    assert u.kind == kind
    assert says in str(u)
    assert u.affine == (kind not in (TWO_SIDED, UNREAD, NOT_AFFINE))


def test_the_pieces_of_the_delta_rule_with_decay():
    u = the(lambda t, H: gamma[t] * H - beta[t] * (gamma[t] * H * k[t] - v[t]) * k[t].T)
    (outer,) = u.right.outers
    assert (u.right.number, outer.column, outer.row) == (gamma[t], k[t], k[t].T)
    assert str(u.write) == "β_t v_t k_tᵀ"
    assert str(u.right.matrix) == "γ_t I − β_t γ_t k_t k_tᵀ"


def test_a_column_is_acted_on_from_the_left():
    u = the(lambda t, h: Hadamard(a[t], h) + k[t] * (k2[t].T * h) + v[t].T * v[t] * k[t], h0)
    assert str(u) == "diagonal plus rank one on the left"
    assert str(the(lambda t, h: gamma[t] * h, h0)) == "scalar on the left"


def test_a_gate_for_each_entry_is_a_diagonal_matrix_on_either_side():
    u = the(lambda t, H: Hadamard(gamma[t] * v[t] * a[t].T, H) + v[t] * k[t].T)
    assert (u.left.matrix, u.right.matrix) == (Diag(v[t]), gamma[t] * Diag(a[t]))


def test_branches_are_weights():
    u = the(lambda t, H: Where(le(t, 3), H, gamma[t] * H))
    assert u.kind == "scalar"


def test_a_rank_is_counted_once_for_each_direction():
    u = the(lambda t, H: H * (Eye(n) - k[t] * k[t].T - k[t] * k2[t].T))
    assert (u.kind, u.right.rank, len(u.right.outers)) == ("rank one", 1, 2)


def test_read_outs():
    assert declared(lambda t, H: H, read=lambda H: H[t - 1] * q[t] + v[t]).read.linear
    normalised = declared(lambda t, H: H, read=lambda H: H[t] * q[t] / (v[t].T * H[t] * q[t])).read
    assert not normalised.linear
    assert "both depend on the state" in normalised.reason


@pytest.mark.parametrize("architecture", architectures())
def test_every_declaration_of_the_house_is_read(architecture):
    for d in declarations(architecture):
        assert classify(d).kind


def test_nothing_is_written():
    assert the(lambda t, H: H * Num(1)).write is None


def test_a_state_under_a_name_is_seen():
    """A member of a recursion whose step has named terms is the state all the same."""
    u = the(lambda t, H: named("f", Hadamard(H, H)) + H)
    assert u.kind == NOT_AFFINE


def test_a_function_entry_by_entry_is_not_affine():
    """Nor is what has one inside of rows; rows of something linear are not looked into."""
    assert the(lambda t, h: entrywise(lambda x: Exp(x), h), h0).kind == NOT_AFFINE
    assert the(lambda t, h: entrywise(lambda x: x * x, h), h0).kind == NOT_AFFINE
    assert the(lambda t, h: entrywise(lambda x: 2 * x, h), h0).kind == UNREAD


def test_the_state_at_another_time_is_no_write():
    S = recurrence("H", H0, lambda t, H: H + v[t] * k[t].T)
    assert not classify(Declaration("x", {}, S[t - 2] * q[t], t, S, H0)).read.linear
