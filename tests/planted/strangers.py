"""Right kernels that share nothing with isoform's forms: other algorithms for the same operators. No check may accuse one.

Sums are kept in float32 at least. None takes packed sequences or chunk sizes. Everything a row may not see is left out of
it before anything is multiplied, since 0 · NaN is NaN.
"""

import torch
from torch.nn.functional import conv1d, pad, silu


def wide(*tensors):
    """The tensors in the dtype of sums."""
    kinds = [x.dtype for x in tensors if x is not None]
    kind = torch.float32
    for other in kinds:
        kind = torch.promote_types(kind, other)
    return [None if x is None else x.to(kind) for x in tensors]


def doubled(transition, write, after=torch.mul):
    """All x_t of x_t = a_t x_{t-1} + b_t from 0, and all products a_t … a_1, time first, in log₂ t rounds (Hillis and Steele)."""
    span = 1
    while span < len(write):
        write = torch.cat([write[:span], after(transition[span:], write[:-span]) + write[span:]])
        transition = torch.cat([transition[:span], after(transition[span:], transition[:-span])])
        span *= 2
    return transition, write


def queries(q, scale):
    return q * (q.shape[-1] ** -0.5 if scale is None else scale)


def head_first(x, heads):
    """(B, T, H, D) as (B, HV, T, D)."""
    return x.transpose(1, 2).repeat_interleave(heads // x.shape[2], 1)


def answered(o, state, v, asked):
    """Outputs (B, H, T, V) and state as the plain call returns them."""
    return o.transpose(1, 2).to(v.dtype), state if asked else None


def linear_by_running_sums(q, k, v, scale=None, initial_state=None, output_final_state=False):
    """Linear attention: outer products, summed up over time."""
    a, b, c, s = wide(q, k, v, initial_state)
    a, b, c = (head_first(x, v.shape[2]) for x in (queries(a, scale), b, c))
    writes = torch.einsum("bhtk,bhtv->bhtkv", b, c)
    start = writes.new_zeros(*writes.shape[:2], 1, *writes.shape[3:]) if s is None else s.unsqueeze(2)
    states = torch.cat([start, writes], 2).cumsum(2)
    return answered(torch.einsum("bhtk,bhtkv->bhtv", a, states[:, :, 1:]), states[:, :, -1].clone(), v, output_final_state)


def retention_by_powers(q, k, v, scale=None, g_gamma=None, initial_state=None, output_final_state=False):
    """Retention: row by row, every earlier token weighed with a power of the decay."""
    a, b, c, s, g = wide(q, k, v, initial_state, g_gamma)
    heads, steps = v.shape[2], q.shape[1]
    g = torch.log1p(-torch.exp2(-5.0 - torch.arange(q.shape[2]).to(a))) if g is None else g
    g = g.repeat_interleave(heads // q.shape[2])
    a, b, c = (head_first(x, heads) for x in (queries(a, scale), b, c))
    s = a.new_zeros(len(a), heads, a.shape[-1], c.shape[-1]) if s is None else s

    def power(n):
        return torch.where(n == 0, torch.zeros(()).to(g), n * g[:, None]).exp()

    def state(t):
        age = torch.arange(t - 1, -1, -1).to(g)
        return torch.einsum("bhtk,ht,bhtv->bhkv", b[:, :, :t], power(age), c[:, :, :t]) + power(torch.tensor([t]).to(g))[..., None] * s

    rows = [torch.einsum("bhk,bhkv->bhv", a[:, :, t], state(t + 1)) for t in range(steps)]
    o = torch.stack(rows, 2) if rows else a[..., :1] * c
    return answered(o, state(steps), v, output_final_state)


def scanned(q, k, v, scale, s, decay, output_final_state):
    """A memory whose entries fade by ``decay`` (T, B, HV, K or 1, V or 1): every entry by a scan."""
    a, b, c = (x.movedim(1, 0) for x in (queries(q, scale), k, v))
    a, b = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (a, b))
    faded, states = doubled(decay, b.unsqueeze(-1) * c.unsqueeze(-2))
    if s is not None:
        states = states + faded * s
    o = torch.einsum("tbhk,tbhkv->tbhv", a, states)
    last = states[-1].clone() if len(states) else (v.new_zeros(*o.shape[1:3], k.shape[-1], o.shape[-1]) if s is None else s.clone())
    return o.movedim(0, 1), last if output_final_state else None


def gated_retention_by_scan(q, k, v, g, scale=None, initial_state=None, output_final_state=False):
    a, b, c, gate, s = wide(q, k, v, g, initial_state)
    o, state = scanned(a, b, c, scale, s, gate.exp().movedim(1, 0)[..., None, None], output_final_state)
    return o.to(v.dtype), state


def gated_linear_by_scan(q, k, v, gk, gv=None, scale=None, initial_state=None, output_final_state=False):
    a, b, c, keys, values, s = wide(q, k, v, gk, gv, initial_state)
    decay = keys.exp().movedim(1, 0).repeat_interleave(v.shape[2] // q.shape[2], 2).unsqueeze(-1)
    if values is not None:
        decay = decay * values.exp().movedim(1, 0).unsqueeze(-2)
    o, state = scanned(a, b, c, scale, s, decay, output_final_state)
    return o.to(v.dtype), state


def corrected(q, k, v, gate, beta, scale, s, output_final_state, composed=doubled):
    """The delta rule: token t maps S to (e^g (I - β k kᵀ)) S + β k vᵀ; such maps are composed by a scan of matrices."""
    a, b, c = (x.movedim(1, 0) for x in (queries(q, scale), k, v))
    a, b = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (a, b))
    strength = beta.movedim(1, 0)[..., None, None]
    identity = torch.eye(k.shape[-1]).to(a)
    transition = identity - strength * b.unsqueeze(-1) * b.unsqueeze(-2)
    if gate is not None:
        transition = gate.exp().movedim(1, 0)[..., None, None] * transition
    passed, states = composed(transition, strength * b.unsqueeze(-1) * c.unsqueeze(-2), torch.matmul)
    if s is not None:
        states = states + passed @ s
    o = torch.einsum("tbhk,tbhkv->tbhv", a, states)
    last = states[-1].clone() if len(states) else (v.new_zeros(*o.shape[1:3], k.shape[-1], o.shape[-1]) if s is None else s.clone())
    return o.movedim(0, 1), last if output_final_state else None


def delta_by_composition(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    a, b, c, strength, s = wide(q, k, v, beta, initial_state)
    o, state = corrected(a, b, c, None, strength, scale, s, output_final_state)
    return o.to(v.dtype), state


def gated_delta_by_composition(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False):
    a, b, c, gate, strength, s = wide(q, k, v, g, beta, initial_state)
    o, state = corrected(a, b, c, gate, strength, scale, s, output_final_state)
    return o.to(v.dtype), state


def attention_pair_by_pair(q, k, v, scale=None, mask=None, window_size=None):
    """Attention: the sum over keys of what each row may see."""
    a, b, c = wide(q, k, v)
    a, b, c = (head_first(x, q.shape[2]) for x in (queries(a, scale), b, c))
    behind = k.shape[1] - q.shape[1] + torch.arange(q.shape[1])[:, None] - torch.arange(k.shape[1])
    seen = behind >= 0
    if window_size is not None:
        seen = seen & (behind < window_size)
    seen = seen.expand(len(q), 1, *seen.shape)
    if mask is not None:
        seen = seen & (mask[:, None, None] if mask.ndim == 2 else mask[:, None])
    held = seen.unsqueeze(-1)
    scores = (a.unsqueeze(3) * torch.where(held, b.unsqueeze(2), 0)).sum(-1)
    top = torch.where(seen, scores, -torch.inf).amax(-1, keepdim=True).clamp(min=-3e38) if k.shape[1] else scores.sum(-1, keepdim=True)
    weights = torch.where(seen, torch.where(seen, scores - top, 0).exp(), 0)
    total = weights.sum(-1, keepdim=True)
    weights = weights / torch.where(total > 0, total, 1)
    o = (weights.unsqueeze(-1) * torch.where(held, c.unsqueeze(2), 0)).sum(3)
    return o.transpose(1, 2).to(v.dtype)


def selective_by_scan(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None, return_last_state=False
):
    """The selective scan with B̄ = ΔB: every entry of the state by a scan over time."""
    dtype = u.dtype
    u, delta, A, B, C, D, z, delta_bias, h = wide(u, delta, A, B, C, D, z, delta_bias, initial_state)
    delta = delta if delta_bias is None else delta + delta_bias[:, None]
    delta = torch.logaddexp(delta, torch.zeros_like(delta)) if delta_softplus else delta

    def by_channel(x):
        """(D, N), (B, N, L) or (B, G, N, L) as (L or 1, B or 1, D, N)."""
        if x.ndim == 2:
            return x[None, None]
        x = x.unsqueeze(1) if x.ndim == 3 else x
        return x.repeat_interleave(u.shape[1] // x.shape[1], 1).permute(3, 0, 1, 2)

    steps, inputs = (x.permute(2, 0, 1).unsqueeze(-1) for x in (delta, u))
    faded, states = doubled((steps * A).exp(), steps * by_channel(B) * inputs)
    if h is not None:
        states = states + faded * h
    y = (states * by_channel(C)).sum(-1).permute(1, 2, 0)
    y = y if D is None else y + D[:, None] * u
    y = y if z is None else y * silu(z)
    last = states[-1].clone() if len(states) else (u.new_zeros(*u.shape[:2], A.shape[1]) if h is None else h.clone())
    return (y.to(dtype), last) if return_last_state else y.to(dtype)


def system_by_doubling(u, Abar, Bbar, C, D=None, initial_state=None, output_final_state=False):
    """A state space model: all states by log₂ t powers of one matrix."""
    given = u
    number = D if isinstance(D, torch.Tensor) else None
    u, a, b, c, number, x = wide(u, Abar, Bbar, C, number, initial_state)
    if isinstance(D, complex) and not u.is_complex():
        u = u.to(torch.promote_types(u.dtype, torch.complex64))
    states = u.T.unsqueeze(-1) * b
    start = torch.zeros_like(states[:1]) if len(states) else states.new_zeros(1, len(u), len(b))
    states = torch.cat([start if x is None else x.unsqueeze(0).to(states.dtype), states])
    span = 1
    while span < len(states):
        moved = states[:-span] @ a.mT if a.ndim == 2 else states[:-span] * a
        states = torch.cat([states[:span], states[span:] + moved])
        a, span = (a @ a if a.ndim == 2 else a * a), 2 * span
    y = (states[1:] * c).sum(-1).T
    if D is not None:
        y = y + (D if number is None else number) * u
    fine = given.dtype in (torch.float64, torch.complex128)
    narrow = (torch.complex128 if fine else torch.complex64) if y.is_complex() else given.dtype
    return (y.to(narrow), states[-1].clone()) if output_final_state else y.to(narrow)


def wkv_row_by_row(k, v, w, u, initial_state=None, output_final_state=False):
    """WKV in logarithms: every row weighs all earlier tokens anew."""
    dtype = v.dtype
    k, v, w, u, s = wide(k, v, w, u, initial_state)
    nothing = k.new_zeros(len(k), k.shape[2])
    a, b, p = (nothing, nothing, nothing - torch.inf) if s is None else s.unbind(1)

    def sums(t):
        """Numerator and denominator after t tokens, both over e^p, and p."""
        age = torch.arange(t - 1, -1, -1).to(k)[:, None]
        faded = torch.where(age == 0, 0, age * w)
        exponents = torch.cat([(p + t * w if t else p).unsqueeze(1), k[:, :t] + faded], 1)
        top = exponents.amax(1).detach()
        gone = exponents == -torch.inf
        weights = torch.where(gone, 0, torch.where(gone, 0, exponents - top.unsqueeze(1)).exp())
        above = weights[:, 0] * a + (weights[:, 1:] * v[:, :t]).sum(1)
        return above, weights[:, 0] * b + weights[:, 1:].sum(1), top

    rows = []
    for t in range(k.shape[1]):
        above, below, top = sums(t)
        own = u + k[:, t]
        shift = torch.maximum(top, own).detach()
        kept, entering = (top - shift).exp(), (own - shift).exp()
        rows.append((kept * above + entering * v[:, t]) / (kept * below + entering))
    o = (torch.stack(rows, 1) if rows else v).to(dtype)
    return (o, torch.stack(sums(k.shape[1]), 1)) if output_final_state else o


def convolution_by_library(x, weight, bias=None, initial_states=None, return_final_states=False, activation=None):
    """The causal convolution by the framework's grouped one."""
    taps = weight.shape[1]
    inputs, kernel, shift, before = wide(x, weight, bias, initial_states)
    inputs = pad(inputs, (taps - 1, 0)) if before is None else torch.cat([before, inputs], -1)
    y = conv1d(inputs, kernel.unsqueeze(1), shift, groups=len(kernel)) if x.shape[-1] else inputs[..., :0]
    y = (y if activation is None else silu(y)).to(x.dtype)
    return (y, inputs[..., x.shape[-1] :].clone()) if return_final_states else y


STRANGERS = {
    "linear-attention": (linear_by_running_sums,),
    "retention": (retention_by_powers,),
    "gated-retention": (gated_retention_by_scan,),
    "gated-linear-attention": (gated_linear_by_scan,),
    "delta-rule": (delta_by_composition,),
    "gated-delta-rule": (gated_delta_by_composition,),
    "attention": (attention_pair_by_pair,),
    "selective-scan": (selective_by_scan,),
    "lti": (system_by_doubling,),
    "wkv": (wkv_row_by_row,),
    "causal-conv1d": (convolution_by_library,),
}
