"""Kernels of the delta rule that are right, wrong, or end in every way."""

import ctypes
import os
import sys
import time

import torch


def right(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Token by token."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    dtype, groups = v.dtype, v.shape[2] // q.shape[2]
    q, k, v, beta = (x.to(wide) for x in (q, k, v, beta))
    q, k = (x.repeat_interleave(groups, 2) for x in (q, k))
    state = q.new_zeros(*q.shape[::2], q.shape[3], v.shape[3]) if initial_state is None else initial_state
    rows = []
    for t in range(q.shape[1]):
        write = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * write[:, :, None]
        rows.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    out = torch.stack(rows, 1) if rows else v
    return out.to(dtype), state.clone() if output_final_state else None


def wrong(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """The state is that after whole chunks of 16."""
    out, state = right(q, k, v, beta, scale, initial_state, output_final_state)
    whole = q.shape[1] // 16 * 16
    if output_final_state:
        _, state = right(*(x[:, :whole] for x in (q, k, v, beta)), scale, initial_state, True)
    return out, state


class Loud(torch.autograd.Function):
    """The identity, with a gradient that is too large."""

    @staticmethod
    def forward(ctx, x):
        """The same."""
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        """A hundredth more."""
        return 1.01 * gradient


def loud(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """The gradient by the keys is too large."""
    return right(q, Loud.apply(k), v, beta, scale, initial_state, output_final_state)


def detached(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """No gradient reaches the strengths."""
    return right(q, k, v, beta.detach(), scale, initial_state, output_final_state)


def misreads(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Reads the values as if they were contiguous."""
    v = v.as_strided(v.shape, torch.empty(v.shape).stride())
    return right(q, k, v, beta, scale, initial_state, output_final_state)


def hangs(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Never comes back from five tokens."""
    while q.shape[1] == 5:
        pass
    return right(q, k, v, beta, scale, initial_state, output_final_state)


def sleeps(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Takes its time."""
    time.sleep(0.1)
    return right(q, k, v, beta, scale, initial_state, output_final_state)


def crashes(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Reads what is not there."""
    return ctypes.string_at(0)


def leaves(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Ends the interpreter as a script does."""
    sys.exit(3)


def prints(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Says something on stdout, by Python and past it."""
    print("from the kernel", flush=True)
    os.write(1, b"from the kernel\n")
    return right(q, k, v, beta, scale, initial_state, output_final_state)


def sets(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """Leaves a setting of torch behind."""
    torch.set_default_dtype(torch.float64)
    return right(q, k, v, beta, scale, initial_state, output_final_state)


def generator(q, k, v, beta):
    """Computes nothing when it is called."""
    yield q


class Layer(torch.nn.Module):
    """The delta rule as a layer."""

    def forward(self, q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        """Token by token."""
        return right(q, k, v, beta, scale, initial_state, output_final_state)


layer = Layer()
