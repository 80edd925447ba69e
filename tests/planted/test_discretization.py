"""Faulty discretisation rules: each law must see faults of its kind, at both scales."""

from functools import wraps

import pytest
import torch

from isoform.impl import discretization
from isoform.properties.operator import Form

from .planting import checked

BASES = {name: forms[0] for name, forms in discretization.FORMS.items()}


def faulty(change):
    """Make of change(base, A, B, delta, diagonal) a rule with the base's own arguments."""

    def plant(base):
        @wraps(base)
        def rule(A, B, delta, diagonal=False):
            return change(base, A, B, delta, diagonal)

        return rule

    plant.__name__ = change.__name__
    return plant


def scaled(A, delta, diagonal):
    return A * (delta[:, None] if diagonal else delta[:, None, None])


@faulty
def zeros(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a * 0, b


@faulty
def a_little_large(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a * 1.004, b


@faulty
def drive_a_little_large(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a, b * 1.004


@faulty
def transposed(base, A, B, delta, diagonal):
    return base(A if diagonal else A.mT, B if not diagonal else B.flip(1), delta, diagonal)


@faulty
def drive_not_held(base, A, B, delta, diagonal):
    """B̄ = ΔB, as released code has it (where the rule has that, half of it)."""
    a, b = base(A, B, delta, diagonal)
    if b.ndim > 2:
        return a, b.flip(-1) * 0.996
    return a, B.to(a.dtype) * delta[:, None] * (0.5 if base in (discretization.euler, discretization.impulse) else 1)


@faulty
def ends_swapped(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a, b.flip(-1)


@faulty
def scipys_state(base, A, B, delta, diagonal):
    """The first-order hold of SciPy's own state, x_k - B̄₁ u_k."""
    a, b = base(A, B, delta, diagonal)
    driven = a * b[..., 1] if diagonal else (a @ b[..., 1:])[..., 0]
    return a, torch.stack([b[..., 0] + driven, torch.zeros_like(driven)], -1)


@faulty
def update_before_the_input(base, A, B, delta, diagonal):
    """The impulse-invariant pair of a system that is read before its update."""
    a, b = base(A, B, delta, diagonal)
    return a, a * b if diagonal else (a @ b.unsqueeze(-1))[..., 0]


@faulty
def naive_formula(base, A, B, delta, diagonal):
    """B̄ = A⁻¹ (Ā - I) B: NaN at a singular A, and no digits at a small one."""
    a, _ = base(A, B, delta, diagonal)
    A, B = A.to(a.dtype), B.to(a.dtype)
    if diagonal:
        return a, (a - 1) / A * B
    eye = torch.eye(A.shape[-1], dtype=a.dtype)
    return a, (torch.linalg.pinv(A) @ (a - eye) @ B.unsqueeze(-1)).squeeze(-1)


@faulty
def another_rule(base, A, B, delta, diagonal):
    other = {discretization.bilinear: discretization.zoh, discretization.foh: held_from_the_start}.get(base, discretization.bilinear)
    return other(A, B, delta, diagonal)


def held_from_the_start(A, B, delta, diagonal):
    a, b = discretization.zoh(A, B, delta, diagonal)
    return a, torch.stack([b, torch.zeros_like(b)], -1)


@faulty
def half_precision(base, A, B, delta, diagonal):
    half = torch.bfloat16 if not (A.is_complex() or B.is_complex()) else torch.complex32
    a, b = base(A, B, delta.to(torch.bfloat16).to(delta.dtype), diagonal)
    return (a.to(half).to(a.dtype), b) if half == torch.bfloat16 else (a, b)


@faulty
def step_of_the_first(base, A, B, delta, diagonal):
    return base(A, B, delta[:1].expand_as(delta), diagonal)


@faulty
def step_doubled(base, A, B, delta, diagonal):
    return base(A, B, 2 * delta, diagonal)


@faulty
def drive_overwritten(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    if b.shape != B.shape:
        return a, (B.copy_(b[..., 0]), b)[1]
    return (a, B.copy_(b)) if B.dtype == b.dtype else (a, b)


@faulty
def matrix_scaled_in_place(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    A.mul_(0.5)
    return a, b


@faulty
def result_in_the_matrix(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return (A.copy_(a), b) if A.dtype == a.dtype else (a, b)


@faulty
def step_zeroed_in_place(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    delta.zero_()
    return a, b


@faulty
def nothing_copied(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    if b.shape != B.shape:
        return A.mul_(0).add_(a) if A.dtype == a.dtype else a, b
    return a, B.unsqueeze(1)[:, 0].mul_(0).add_(b.to(B.dtype)) if B.dtype == b.dtype else b


@faulty
def strides_misread(base, A, B, delta, diagonal):
    stored = A.untyped_storage().nbytes() // A.element_size() - A.storage_offset()
    return base(A.as_strided(A.shape, torch.empty(A.shape).stride(), A.storage_offset()) if A.numel() <= stored else A, B, delta, diagonal)


@faulty
def drive_misread(base, A, B, delta, diagonal):
    stored = B.untyped_storage().nbytes() // B.element_size() - B.storage_offset()
    return base(A, B.as_strided(B.shape, (B.shape[1], 1), B.storage_offset()) if B.numel() <= stored else B, delta, diagonal)


@faulty
def views_of_arguments(base, A, B, delta, diagonal):
    return base(A.view(-1).view(A.shape), B.view(-1).view(B.shape), delta, diagonal)


@faulty
def neighbours_leak(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a, b + 1e-3 * b.roll(1, 0) * (len(b) > 1)


@faulty
def neighbours_poison(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a + 0 * a.sum(0, keepdim=True), b


@faulty
def scaled_by_the_batch(base, A, B, delta, diagonal):
    size = B.abs().max()
    a, b = base(A, B / size, delta, diagonal)
    return a, b * size


@faulty
def drive_of_the_other_sign(base, A, B, delta, diagonal):
    a, b = base(A, B, delta, diagonal)
    return a, -b


class Louder(torch.autograd.Function):
    """The identity, with a gradient that is 0.4 % too large."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 1.004


@faulty
def matrix_detached(base, A, B, delta, diagonal):
    return base(A.detach(), B, delta, diagonal)


@faulty
def step_detached(base, A, B, delta, diagonal):
    return base(A, B, delta.detach(), diagonal)


@faulty
def gradient_a_little_large(base, A, B, delta, diagonal):
    return base(louder(A), louder(B), delta, diagonal)


@faulty
def nan_behind_where(base, A, B, delta, diagonal):
    """Right values, but the gradient of the branch not taken is NaN at a pole of 0."""
    a, b = base(A, B, delta, diagonal)
    if not diagonal:
        return a, b
    z = A * delta[:, None]
    return a, torch.where(z == 0, 1, torch.expm1(z) / z) * B * delta[:, None]


PLANTED = {
    "form-equals-oracle": (
        zeros,
        a_little_large,
        drive_a_little_large,
        transposed,
        drive_not_held,
        another_rule,
        half_precision,
        step_of_the_first,
    ),
    "scipy-agrees": (zeros, a_little_large, drive_not_held, another_rule),
    "equilibrium-stays": (a_little_large, drive_not_held, drive_of_the_other_sign),
    "small-step": (step_doubled, zeros, drive_of_the_other_sign),
    "gradient-of-inputs": (matrix_detached, step_detached, gradient_a_little_large),
    "arguments-untouched": (drive_overwritten, matrix_scaled_in_place, step_zeroed_in_place),
    "results-own-memory": (drive_overwritten, result_in_the_matrix, nothing_copied),
    "layout": (strides_misread, drive_misread, views_of_arguments),
    "batch-company": (neighbours_leak, neighbours_poison, scaled_by_the_batch),
}
HOLD = {
    "form-equals-oracle": (naive_formula,),
    "gradient-of-inputs": (nan_behind_where,),
    "held-input": (another_rule, drive_not_held, a_little_large, drive_a_little_large),
    "semigroup": (another_rule, drive_not_held, a_little_large, naive_formula),
}
RAMP = {
    "form-equals-oracle": (ends_swapped, scipys_state),
    "scipy-agrees": (ends_swapped, scipys_state),
    "held-input": (ends_swapped, scipys_state, another_rule, a_little_large, drive_a_little_large),
    "semigroup": (ends_swapped, scipys_state, another_rule, a_little_large),
    "small-step": (ends_swapped, scipys_state),
}
IMPULSE = {"form-equals-oracle": (update_before_the_input,), "scipy-agrees": (update_before_the_input,)}
RESTING = ("equilibrium-stays",)
"""An impulse-invariant rule does not keep equilibria."""
PAIRS = [(name, law, f) for name in BASES for law, fs in PLANTED.items() for f in fs if not (name == "impulse" and law in RESTING)]
PAIRS.remove(("foh", "results-own-memory", drive_overwritten))  # B has no room for two columns
PAIRS += [(name, law, f) for name, own in (("zoh", HOLD), ("foh", RAMP), ("impulse", IMPULSE)) for law, fs in own.items() for f in fs]


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize(("name", "law", "plant"), [pytest.param(*p, id=f"{p[0]}-{p[1]}-{p[2].__name__}") for p in PAIRS])
def test_a_faulty_rule_is_caught(name, law, plant, scale):
    result = checked(law, name, Form(plant.__name__, plant(BASES[name])), scale)
    assert result.verdict == "violated", result
    assert result.worst_error_over_bound > 1 and result.witness is not None
