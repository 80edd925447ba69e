"""H3: y = q ⊙ SSM_diag(SSM_shift(k) ⊗ v), two state spaces between three projections of the same tokens.

Fu et al. 2023 (Hungry Hungry Hippos, arXiv:2212.14052), algorithm 1, with heads; without heads k and v have one feature.

    k̃_t = Σ_{j<w} shift_j k_{t-j}           the shift: its state is the last w - 1 keys
    S_t = Ā S_{t-1} + B̄ k̃_t v_tᵀ             for each of n diagonal modes of a head, S_t (n, k, v)
    y_t = Re(C · S_t)ᵀ q_t

``q`` and ``k`` are (b, t, h, k), ``v`` (b, t, h, v), ``shift`` (h, k, w), ``Abar``, ``Bbar`` and ``C`` (h, n), real or complex, the
others real. A feedthrough of the paper's shift is a part of its first tap. The state is (b, h, k, w - 1 + n·v): the
last keys, the newest first, and the modes, one n after the other. Sums and states are kept in the promoted dtype of all
arguments, float32 for 16-bit ones; ``y`` has the dtype of ``v``. A non-finite input changes its own and later outputs only.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from ._common import COMPLEX, REAL, accumulator, check, check_positive, made_of
from ._kernels import causal_convolution, factors, orbit, plus_stain, real_product, stained


def recurrent(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t h v"],
    shift: Float[Tensor, "h k w"],
    Abar: Inexact[Tensor, "h n"],
    Bbar: Inexact[Tensor, "h n"],
    C: Inexact[Tensor, "h n"],
    initial_state: Inexact[Tensor, "b h k s"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b t h v"] | tuple[Float[Tensor, "b t h v"], Inexact[Tensor, "b h k s"]]:
    """Token by token: y, or (y, state) if ``output_final_state``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = _enter("h3.recurrent", q, k, v, "b t h", shift, Abar, Bbar, C, initial_state, "initial_state")
    keys, modes, outputs = x.keys, x.modes, []
    for q_t, k_t, v_t in zip(x.q.unbind(1), x.k.unbind(1), x.v.unbind(1), strict=True):
        y, keys, modes = _advance(x, q_t, k_t, v_t, keys, modes)
        outputs.append(y)
    y = torch.stack(outputs, 1) if outputs else made_of(x.v, *x[:2], *x[3:7])
    return _leave(y, keys, modes, v, output_final_state)


def convolution(
    q: Float[Tensor, "b t h k"],
    k: Float[Tensor, "b t h k"],
    v: Float[Tensor, "b t h v"],
    shift: Float[Tensor, "h k w"],
    Abar: Inexact[Tensor, "h n"],
    Bbar: Inexact[Tensor, "h n"],
    C: Inexact[Tensor, "h n"],
    initial_state: Inexact[Tensor, "b h k s"] | None = None,
    output_final_state: bool = False,
) -> Float[Tensor, "b t h v"] | tuple[Float[Tensor, "b t h v"], Inexact[Tensor, "b h k s"]]:
    """The shift as w products, the diagonal system by its kernel and a Fourier transform of at least 2t - 1 points.

    All k·v products of a head are transformed. Rounding errors of a Fourier transform are relative to the largest input of a row.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = _enter("h3.convolution", q, k, v, "b t h", shift, Abar, Bbar, C, initial_state, "initial_state")
    length, width = q.shape[1], shift.shape[2]
    if length == 0:
        return _leave(made_of(x.v, *x[:2], *x[3:7]), x.keys, x.modes, v, output_final_state)
    along = torch.cat([x.keys.flip(-1), x.k.permute(0, 2, 3, 1)], -1)
    shifted = sum(x.shift[..., j : j + 1] * along[..., width - 1 - j : width - 1 - j + length] for j in range(width))
    written, stain = stained(torch.einsum("bhkt,bthv->bhkvt", shifted, x.v))
    rows, columns, _ = factors(x.Abar, x.C, x.Bbar.unsqueeze(-1), length, False)
    kernel = real_product(rows, columns.squeeze(-1)).flatten(-2)[..., :length]
    held = causal_convolution(written, kernel[:, None, None])
    powers, _ = orbit(x.Abar, x.Abar.unsqueeze(-1), length, False)
    if initial_state is not None:
        free = torch.einsum("hn,hnt,bhnkv->bhkvt", x.C, powers[..., 0], x.modes)
        held = held + (free.real if free.is_complex() else free)
    y = torch.einsum("bthk,bhkvt->bthv", x.q, plus_stain(held, stain))
    if not output_final_state:
        return _leave(y, x.keys, x.modes, v, False)
    back, _ = orbit(x.Abar, x.Bbar.unsqueeze(-1), length, False)
    last = torch.einsum("hnt,bhkvt->bhnkv", back[..., 0].flip(-1), written.to(x.Abar.dtype))
    last = last + powers[:, :, -1:] * x.modes
    last = last if stain is None else last + stain[..., -1].unsqueeze(2)
    return _leave(y, along[..., length:].flip(-1), last, v, True)


def step(
    q: Float[Tensor, "b h k"],
    k: Float[Tensor, "b h k"],
    v: Float[Tensor, "b h v"],
    shift: Float[Tensor, "h k w"],
    Abar: Inexact[Tensor, "h n"],
    Bbar: Inexact[Tensor, "h n"],
    C: Inexact[Tensor, "h n"],
    state: Inexact[Tensor, "b h k s"] | None = None,
) -> tuple[Float[Tensor, "b h v"], Inexact[Tensor, "b h k s"]]:
    """One token: (y, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype.
    ValueError
        Shapes or devices that do not fit together.

    """
    x = _enter("h3.step", q, k, v, "b h", shift, Abar, Bbar, C, state, "state")
    y, keys, modes = _advance(x, x.q, x.k, x.v, x.keys, x.modes)
    return y.to(v.dtype), _state(keys, modes)


def recall(width: int) -> dict[str, Tensor]:
    """``shift``, ``Abar``, ``Bbar`` and ``C`` of one head that recalls what followed: with q = k = v the tokens, one-hot.

    The shift is a delay of 1, so that k̃_t v_tᵀ writes each token beside the one before it; nothing is forgotten. A token that came
    once, before, reads the one that followed; one that came twice reads the sum (H3, section 3.1 and appendix D). float64.

    Raises
    ------
    TypeError
        A ``width`` that is no integer.
    ValueError
        A ``width`` below 1.

    """
    check_positive("h3.recall", "width", width)
    delay = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(1, width, 1)
    one = torch.ones(1, 1, dtype=torch.float64)
    return {"shift": delay, "Abar": one, "Bbar": one.clone(), "C": one.clone()}


FORMS = {"h3": (recurrent, convolution)}
STEPS = {"h3": step}


class _Call(NamedTuple):
    """Arguments in the accumulation dtype, and the two parts of the state: keys (b, h, k, w - 1) and modes (b, h, n, k, v)."""

    q: Tensor
    k: Tensor
    v: Tensor
    shift: Tensor
    Abar: Tensor
    Bbar: Tensor
    C: Tensor
    keys: Tensor
    modes: Tensor


def _enter(
    where: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lead: str,
    shift: Tensor,
    Abar: Tensor,
    Bbar: Tensor,
    C: Tensor,
    state: Tensor | None,
    state_name: str,
) -> _Call:
    """Check, and bring everything to the accumulation dtype; tokens and the shift stay real."""
    real_ones = {"q": (q, f"{lead} k"), "k": (k, f"{lead} k"), "v": (v, f"{lead} v"), "shift": (shift, "h k w")}
    check(where, real_ones)
    others = {"Abar": (Abar, "h n"), "Bbar": (Bbar, "h n"), "C": (C, "h n"), state_name: (state, "b h k s")}
    sizes = check(where, {**real_ones, **others}, (*REAL, *COMPLEX))
    check_positive(where, "the width of the shift", sizes["w"])
    before, count = sizes["w"] - 1, sizes["n"] * sizes["v"]
    if state is not None and sizes["s"] != before + count:
        raise ValueError(f"{where}: {state_name} has shape {tuple(state.shape)}; the last axis needs w - 1 + n·v = {before + count}.")
    dtype = accumulator(q, k, v, shift, Abar, Bbar, C, state)
    real = torch.float64 if dtype in (torch.float64, torch.complex128) else torch.float32
    dtype = dtype if dtype.is_complex else real
    if state is None:
        state = torch.zeros(*(sizes[a] for a in "bhk"), before + count, dtype=dtype, device=q.device)
    keys, modes = state.split([before, count], -1)
    modes = modes.to(dtype).unflatten(-1, (sizes["n"], sizes["v"])).permute(0, 1, 3, 2, 4)
    keys = (keys.real if keys.is_complex() else keys).to(real)
    q, k, v, shift = (x.to(real) for x in (q, k, v, shift))
    Abar, Bbar, C = (x.to(dtype) for x in (Abar, Bbar, C))
    return _Call(q, k, v, shift, Abar, Bbar, C, keys, modes)


def _advance(x: _Call, q: Tensor, k: Tensor, v: Tensor, keys: Tensor, modes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One token: its output, and the two parts of the state after it."""
    window = torch.cat([k.unsqueeze(-1), keys], -1)
    shifted = (window * x.shift).sum(-1)
    written = shifted.unsqueeze(-1) * v.unsqueeze(-2)
    modes = x.Abar[..., None, None] * modes + x.Bbar[..., None, None] * written.unsqueeze(-3)
    read = (x.C[..., None, None] * modes).sum(-3)
    read = read.real if read.is_complex() else read
    return (q.unsqueeze(-1) * read).sum(-2), window[..., :-1], modes


def _state(keys: Tensor, modes: Tensor) -> Tensor:
    return torch.cat([keys.to(modes.dtype), modes.permute(0, 1, 3, 2, 4).flatten(-2)], -1)


def _leave(y: Tensor, keys: Tensor, modes: Tensor, v: Tensor, output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    y = y.to(v.dtype)
    return (y, _state(keys, modes)) if output_final_state else y
