"""Linear time-invariant state space model: x_k = Ā x_{k-1} + B̄ u_k, y_k = C x_k + D u_k.

The state is read after the update. Gu et al. 2022 (S4, arXiv:2111.00396), eq. 3-5, with D apart; the diagonal form is
that of S4D (arXiv:2206.11893), section 3.

Symbols: b batch, l time, n state size. ``u`` is (b, l) for any real dtype or a complex one; ``Abar`` is (n, n), or (n)
for a diagonal matrix; ``Bbar`` and ``C`` are (n); ``D`` is a number, a tensor without axes, or None for 0; the state is
(b, n), the last x. Parameters may be complex (complex64, complex128). Then y is the complex number C x + D u: no real
part is taken, and a caller with conjugate pairs takes ``2 * y.real`` himself. Sums and states are kept in the promoted
dtype of all arguments, float32 for 16-bit ones; ``y`` has the precision of ``u``, complex if any argument is (complex64
for 16-bit ``u``). A non-finite input changes its own and later outputs only.
"""

from __future__ import annotations

import torch
from jaxtyping import Inexact
from torch import Tensor

from ._common import COMPLEX, REAL, accumulator, check, made_of, own
from ._kernels import causal_convolution, factors, final_state, last_stain, plus_stain, stained, times
from ._scan import matrix_scan, scan


def recurrent(
    u: Inexact[Tensor, "b l"],
    Abar: Inexact[Tensor, "n n"] | Inexact[Tensor, " n"],
    Bbar: Inexact[Tensor, " n"],
    C: Inexact[Tensor, " n"],
    D: complex | Tensor | None = None,
    initial_state: Inexact[Tensor, "b n"] | None = None,
    output_final_state: bool = False,
) -> Inexact[Tensor, "b l"] | tuple[Inexact[Tensor, "b l"], Inexact[Tensor, "b n"]]:
    """Step by step, as the recurrence is written: y, or (y, state) if ``output_final_state``.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``D`` that is no number.
    ValueError
        Shapes or devices that do not fit together.

    """
    wide, Abar, Bbar, C, D, x = _enter("state_space.recurrent", u, "b l", Abar, Bbar, C, D, initial_state, "initial_state")
    outputs = []
    for u_k in wide.unbind(1):
        x = _advance(Abar, x, u_k, Bbar)
        outputs.append(x @ C)
    y = torch.stack(outputs, 1) if outputs else made_of(wide, Abar, Bbar, C)
    return _leave(y + D * wide, x, u, output_final_state)


def convolution(
    u: Inexact[Tensor, "b l"],
    Abar: Inexact[Tensor, "n n"] | Inexact[Tensor, " n"],
    Bbar: Inexact[Tensor, " n"],
    C: Inexact[Tensor, " n"],
    D: complex | Tensor | None = None,
    initial_state: Inexact[Tensor, "b n"] | None = None,
    output_final_state: bool = False,
) -> Inexact[Tensor, "b l"] | tuple[Inexact[Tensor, "b l"], Inexact[Tensor, "b n"]]:
    """Convolution with the kernel C Āˡ B̄ by a Fourier transform: y, or (y, state) if ``output_final_state``.

    The transform has at least 2l - 1 points, so nothing wraps around. With an initial state, C Ā^{k+1} x_{-1} is
    added. Powers come from repeated squaring and a split l = r·i + j into two factors of about √l; no loop runs over
    time. The rounding error of a Fourier transform is relative to the largest input of a row, not to the local one.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``D`` that is no number.
    ValueError
        Shapes or devices that do not fit together.

    """
    wide, Abar, Bbar, C, D, x = _enter("state_space.convolution", u, "b l", Abar, Bbar, C, D, initial_state, "initial_state")
    length = wide.shape[1]
    if length == 0:
        return _leave(made_of(wide, Abar, Bbar, C) * D, x, u, output_final_state)
    clean, stain = stained(wide)
    dense = Abar.ndim == 2
    starts = torch.cat([Bbar.unsqueeze(-1), times(Abar, x.mT, dense)], 1)
    rows, columns, jump = factors(Abar, C, starts, length, dense)
    response = torch.einsum("ni,njc->cij", rows, columns).flatten(1)[:, :length]
    y = plus_stain(causal_convolution(clean, response[0]) + response[1:] + D * clean, stain)
    if not output_final_state:
        return _leave(y, x, u, False)
    return _leave(y, last_stain(final_state(clean, columns, jump, dense), stain), u, True)


def associative_scan(
    u: Inexact[Tensor, "b l"],
    Abar: Inexact[Tensor, "n n"] | Inexact[Tensor, " n"],
    Bbar: Inexact[Tensor, " n"],
    C: Inexact[Tensor, " n"],
    D: complex | Tensor | None = None,
    initial_state: Inexact[Tensor, "b n"] | None = None,
    output_final_state: bool = False,
) -> Inexact[Tensor, "b l"] | tuple[Inexact[Tensor, "b l"], Inexact[Tensor, "b n"]]:
    """A scan over the maps x -> Ā x + B̄ u_k, of which two in a row are one: y, or (y, state) if ``output_final_state``.

    Smith et al. 2023 (S5, arXiv:2208.04933), section 2.2. All states are held at once, and for a dense Ā a matrix beside each.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``D`` that is no number.
    ValueError
        Shapes or devices that do not fit together.

    """
    where = "state_space.associative_scan"
    wide, Abar, Bbar, C, D, x = _enter(where, u, "b l", Abar, Bbar, C, D, initial_state, "initial_state")
    drive = wide.unsqueeze(-1) * Bbar
    run = matrix_scan if Abar.ndim == 2 else scan
    states, last = run(Abar.expand(*wide.shape, *Abar.shape), drive, x)
    return _leave(states @ C + D * wide, last, u, output_final_state)


def step(
    u: Inexact[Tensor, " b"],
    Abar: Inexact[Tensor, "n n"] | Inexact[Tensor, " n"],
    Bbar: Inexact[Tensor, " n"],
    C: Inexact[Tensor, " n"],
    D: complex | Tensor | None = None,
    state: Inexact[Tensor, "b n"] | None = None,
) -> tuple[Inexact[Tensor, " b"], Inexact[Tensor, "b n"]]:
    """One input of each row: (y, new state). The old state is left as it was; None is 0.

    Raises
    ------
    TypeError
        An argument that is no tensor of an allowed dtype; a ``D`` that is no number.
    ValueError
        Shapes or devices that do not fit together.

    """
    wide, Abar, Bbar, C, D, x = _enter("state_space.step", u, "b", Abar, Bbar, C, D, state, "state")
    x = _advance(Abar, x, wide, Bbar)
    return _like(u, x @ C + D * wide), x


FORMS = {"lti": (recurrent, convolution, associative_scan)}
STEPS = {"lti": step}


def _enter(
    where: str,
    u: Tensor,
    axes: str,
    Abar: Tensor,
    Bbar: Tensor,
    C: Tensor,
    D: complex | Tensor | None,
    state: Tensor | None,
    state_name: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, complex | Tensor, Tensor]:
    """Check, and bring everything to the accumulation dtype."""
    if isinstance(Abar, Tensor) and Abar.ndim not in (1, 2):
        raise ValueError(f"{where}: Abar has shape {tuple(Abar.shape)}; it needs (n, n), or (n,) for a diagonal matrix.")
    square = "n n" if isinstance(Abar, Tensor) and Abar.ndim == 2 else "n"
    if not (D is None or isinstance(D, Tensor | int | float | complex)):
        raise TypeError(f"{where}: D must be a number, a tensor without axes, or None, not {type(D).__name__}.")
    parameters = {"Abar": (Abar, square), "Bbar": (Bbar, "n"), "C": (C, "n"), "D": (D if isinstance(D, Tensor) else None, "")}
    check(where, {"u": (u, axes), **parameters, state_name: (state, "b n")}, (*REAL, *COMPLEX))
    dtype = accumulator(u, Abar, Bbar, C, state, D if isinstance(D, Tensor) else None)
    if isinstance(D, complex):
        dtype = torch.promote_types(dtype, torch.complex64)
    u, Abar, Bbar, C = (x.to(dtype).contiguous() for x in (u, Abar, Bbar, C))
    D = D.to(dtype) if isinstance(D, Tensor) else 0 if D is None else D
    state = u.new_zeros(u.shape[0], C.shape[0]) if state is None else state.to(dtype)
    return u, Abar, Bbar, C, D, state


def _leave(y: Tensor, state: Tensor, u: Tensor, output_final_state: bool) -> Tensor | tuple[Tensor, Tensor]:
    y = _like(u, y)
    return (y, own(state, u.shape[-1])) if output_final_state else y


def _like(u: Tensor, y: Tensor) -> Tensor:
    """Return y in the precision of u."""
    if not y.is_complex() or u.is_complex():
        return y.to(u.dtype)
    return y.to(torch.complex128 if u.dtype == torch.float64 else torch.complex64)


def _advance(Abar: Tensor, x: Tensor, u: Tensor, Bbar: Tensor) -> Tensor:
    drive = u.unsqueeze(-1) * Bbar
    return torch.addmm(drive, x, Abar.mT) if Abar.ndim == 2 else torch.addcmul(drive, x, Abar)
