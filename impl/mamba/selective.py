"""The selective scan of Mamba (S6): h_t = Ā_t ⊙ h_{t-1} + B̄_t u_t, y_t = Σ_n C_t h_t + D u_t, then y · silu(z).

Gu and Dao 2023 (arXiv:2312.00752), algorithm 2. In every channel A is diagonal and Ā_t = e^{Δ_t A}; Δ, B and C change from
token to token. ``discretization`` says what B̄ is:

========  =======================  ==============================================================================
"euler"   Δ_t B_t                  forward Euler's B̄ beside the exact Ā: what the released code computes
"zoh"     (e^{Δ_t A} - 1)/A · B_t  zero-order hold, equation 4 of the paper; Δ_t B_t where A = 0
========  =======================  ==============================================================================

Symbols: b batch, d channels, l time, n states of a channel, g groups of channels: channel i reads B and C of group i // (d / g).

Tensors are float64, float32, bfloat16 or float16. ``u``, ``delta`` and ``z`` are (b, d, l), ``A`` (d, n), ``B`` and ``C``
(b, n, l), (b, g, n, l), or (d, n) if they do not change; ``D`` and ``delta_bias`` (d); a state is (b, d, n). What is None
is left out; Δ is ``delta`` + ``delta_bias``, and with ``delta_softplus`` log(1 + e^x) of that. Sums and states are kept in
the promoted dtype of all arguments, float32 for 16-bit ones; y has the dtype of ``u``. A token that is not finite changes
its own and later rows only.

Each function raises TypeError for an argument that is no tensor of an allowed dtype, and ValueError for shapes or devices
that do not fit together, for groups of unequal size, and for an unknown discretisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from .._common import accumulator, check, check_groups, check_positive, check_state, made_of, own, spread, transformed
from ..discretization import phi1
from .spans import Spans

DISCRETIZATIONS = ("euler", "zoh")
CACHED = 2**18
"""The numbers of a tensor of which a CPU holds a few in its caches."""
HELD = 2**26
"""The numbers of a tensor of which another device has room for a few."""

Result = Float[Tensor, "b d l"] | tuple[Float[Tensor, "b d l"], Float[Tensor, "b d n"]]


def recurrent(
    u: Float[Tensor, "b d l"],
    delta: Float[Tensor, "b d l"],
    A: Float[Tensor, "d n"],
    B: Float[Tensor, "b n l"] | Float[Tensor, "b g n l"] | Float[Tensor, "d n"],
    C: Float[Tensor, "b n l"] | Float[Tensor, "b g n l"] | Float[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    z: Float[Tensor, "b d l"] | None = None,
    delta_bias: Float[Tensor, " d"] | None = None,
    delta_softplus: bool = False,
    initial_state: Float[Tensor, "b d n"] | None = None,
    return_last_state: bool = False,
    discretization: str = "euler",
) -> Result:
    """Token by token, as the recurrence is written: y, or (y, state) if ``return_last_state``."""
    call = _call("mamba.recurrent", u, delta, A, B, C, D, z, delta_bias, delta_softplus, "initial_state", initial_state, discretization)
    h, rows = call.state, []
    tokens = (x.expand(-1, u.shape[-1], *x.shape[2:]).unbind(1) for x in (call.delta, call.u, call.B, call.C))
    for step, x, b, c in zip(*tokens, strict=True):
        h = advanced(h, step, x, call.A, b, call.hold)
        rows.append((c * h).sum(-2))
    y = torch.stack(rows, 1) if rows else made_of(call.delta, call.u, call.A, call.B, call.C)
    return call.leave(y, h, return_last_state)


def scan(
    u: Float[Tensor, "b d l"],
    delta: Float[Tensor, "b d l"],
    A: Float[Tensor, "d n"],
    B: Float[Tensor, "b n l"] | Float[Tensor, "b g n l"] | Float[Tensor, "d n"],
    C: Float[Tensor, "b n l"] | Float[Tensor, "b g n l"] | Float[Tensor, "d n"],
    D: Float[Tensor, " d"] | None = None,
    z: Float[Tensor, "b d l"] | None = None,
    delta_bias: Float[Tensor, " d"] | None = None,
    delta_softplus: bool = False,
    initial_state: Float[Tensor, "b d n"] | None = None,
    return_last_state: bool = False,
    discretization: str = "euler",
    chunk_size: int | None = None,
) -> Result:
    """Discretised, scanned and read out in spans of ``chunk_size`` tokens: y, or (y, state) if ``return_last_state``.

    Memory is a few times b·d·n·chunk_size beside the arguments, with a gradient b·d·n·l / chunk_size more for the states
    that enter the spans. None is a span that a CPU's cache holds, elsewhere a large one; under a transform, and compiled, all.
    """
    if chunk_size is not None:
        check_positive("mamba.scan", "chunk_size", chunk_size)
    call = _call("mamba.scan", u, delta, A, B, C, D, z, delta_bias, delta_softplus, "initial_state", initial_state, discretization)
    y, h = Spans(call.hold, chunk_size or call.span())(call.delta, call.u, call.A, call.B, call.C, call.state)
    return call.leave(y, h, return_last_state)


def step(
    u: Float[Tensor, "b d"],
    delta: Float[Tensor, "b d"],
    A: Float[Tensor, "d n"],
    B: Float[Tensor, "b n"] | Float[Tensor, "b g n"],
    C: Float[Tensor, "b n"] | Float[Tensor, "b g n"],
    D: Float[Tensor, " d"] | None = None,
    z: Float[Tensor, "b d"] | None = None,
    delta_bias: Float[Tensor, " d"] | None = None,
    delta_softplus: bool = False,
    state: Float[Tensor, "b d n"] | None = None,
    discretization: str = "euler",
) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b d n"]]:
    """One token: (y, new state). The old state is left as it was; None is 0. A B or C of each channel has d groups."""
    where = "mamba.step"
    check(where, {"u": (u, "b d"), "delta": (delta, "b d"), "z": (z, "b d")})
    B, C = (_token(where, name, x) for name, x in (("B", B), ("C", C)))
    u, delta = u.unsqueeze(-1), delta.unsqueeze(-1)
    z = None if z is None else z.unsqueeze(-1)
    call = _call(where, u, delta, A, B, C, D, z, delta_bias, delta_softplus, "state", state, discretization)
    token = (call.delta[:, 0], call.u[:, 0], call.A, call.B[:, 0], call.hold)
    h = advanced(call.state, *token)
    y, state = call.leave((call.C[:, 0] * h).sum(-2).unsqueeze(1), h, True)
    return y.squeeze(-1), state


def softplus(x: Float[Tensor, "*s"]) -> Float[Tensor, "*s"]:
    """log(1 + e^x), to the last digits wherever it does not underflow, without a threshold."""
    return torch.logaddexp(x, x.new_zeros(()))


def advanced(
    h: Float[Tensor, "b g n e"],
    delta: Float[Tensor, "b g e"],
    u: Float[Tensor, "b g e"],
    A: Float[Tensor, "g n e"],
    B: Float[Tensor, "b g n e"],
    hold: bool,
) -> Float[Tensor, "b g n e"]:
    """The state after a token."""
    z, drive = delta.unsqueeze(-2) * A, B * (delta * u).unsqueeze(-2)
    return torch.addcmul(drive * phi1(z) if hold else drive, z.exp(), h)


@dataclass(frozen=True)
class Call:
    """A checked call in the accumulation dtype: time second, channels in groups, and states before them (b t g n e)."""

    delta: Float[Tensor, "b t g e"]
    u: Float[Tensor, "b t g e"]
    A: Float[Tensor, "g n e"]
    B: Float[Tensor, "b t g n e"]
    C: Float[Tensor, "b t g n e"]
    state: Float[Tensor, "b g n e"]
    D: Float[Tensor, " d"] | None
    z: Float[Tensor, "b t d"] | None
    hold: bool
    dtype: torch.dtype

    def span(self) -> int:
        """The tokens of a span where the caller does not say."""
        if transformed():
            return max(1, self.u.shape[1])
        return max(1, (CACHED if self.u.is_cpu else HELD) // max(1, self.state.numel()))

    def leave(self, y: Float[Tensor, "b t g e"], h: Float[Tensor, "b g n e"], return_last_state: bool) -> Result:
        """With what passes by the state, the gate, and the caller's axes."""
        y = y.flatten(2)
        if self.D is not None:
            y = torch.addcmul(y, self.u.flatten(2), self.D)
        if self.z is not None:
            y = y * silu(self.z)
        y = y.to(self.dtype).mT
        return (y, own(h, y.shape[-1]).mT.flatten(1, 2)) if return_last_state else y


def _call(
    where: str,
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    state_name: str,
    state: Tensor | None,
    discretization: str,
) -> Call:
    if discretization not in DISCRETIZATIONS:
        raise ValueError(f"{where}: discretization must be one of {', '.join(DISCRETIZATIONS)}, not {discretization!r}.")
    names = {"u": (u, "b d l"), "delta": (delta, "b d l"), "A": (A, "d n"), "B": (B, _axes("gB", B)), "C": (C, _axes("gC", C))}
    sizes = check(where, {**names, "D": (D, "d"), "z": (z, "b d l"), "delta_bias": (delta_bias, "d")})
    grouped = [name for name in ("gB", "gC") if name in sizes]
    for name in grouped:
        check_groups(where, name, "d", sizes)
    groups = lcm(*(sizes[name] for name in grouped))
    shape = {name: sizes[name] for name in "bdn"}
    if state is not None:
        check_state(where, u, state, shape, name=state_name)
    dtype = accumulator(u, delta, A, B, C, D, z, delta_bias, state)
    state = u.new_zeros(tuple(shape.values()), dtype=dtype) if state is None else state.to(dtype)

    def rows(x: Tensor) -> Tensor:
        return x.to(dtype).mT.contiguous()

    def by_group(x: Tensor) -> Tensor:
        return x.unflatten(-1, (groups, x.shape[-1] // groups))

    def weights(x: Tensor) -> Tensor:
        x = x.to(dtype)
        if x.ndim == 2:
            return x.unflatten(0, (groups, x.shape[0] // groups)).mT[None, None].contiguous()
        x = x.movedim(-1, 1).contiguous().unsqueeze(-1)
        x = x if x.ndim == 5 else x.unsqueeze(2)
        return x.expand(-1, -1, groups, -1, -1) if x.shape[2] == 1 else spread(x, groups // x.shape[2], 2)

    steps = rows(delta)
    steps = steps if delta_bias is None else steps + delta_bias.to(dtype)
    steps = softplus(steps) if delta_softplus else steps
    A, state = (x.to(dtype).unflatten(-2, (groups, sizes["d"] // groups)).mT.contiguous() for x in (A, state))
    through = None if D is None else D.to(dtype)
    gate = None if z is None else z.to(dtype).mT
    hold = discretization == "zoh"
    return Call(by_group(steps), by_group(rows(u)), A, weights(B), weights(C), state, through, gate, hold, u.dtype)


def _axes(groups: str, x: Tensor) -> str:
    """The axes of B or C by their number; of another number, those that most have."""
    return {2: "d n", 4: f"b {groups} n l"}.get(x.ndim if isinstance(x, Tensor) else 3, "b n l")


def _token(where: str, name: str, x: Tensor) -> Tensor:
    """B or C of one token, with an axis of time."""
    check(where, {name: (x, "b g n" if isinstance(x, Tensor) and x.ndim == 3 else "b n")})
    return x.unsqueeze(-1)
