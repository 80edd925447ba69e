"""Right kernels in the orders of evaluation that accelerators use: attention in blocks and by log-sum-exps, delta rules by triangular
solves, decays as powers of two or as sums over every segment, means in blocks under a running maximum. No check may accuse one.
"""

import math

import torch
from torch.nn.functional import pad

from .strangers import answered, head_first, queries, wide

LOG2E = math.log2(math.e)
BLOCK = 16


def seen_scores(q, k, v, scale, before=False):
    """Scores (B, H, T, S), -∞ where a row may not look, and values (B, H, S, V); scaled ``before`` the product or after it."""
    a, b, c = wide(q, k, v)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    a, b, c = (head_first(x, q.shape[2]) for x in (a * scale if before else a, b, c))
    scores = a @ b.mT if before else a @ b.mT * scale
    behind = k.shape[1] - q.shape[1] + torch.arange(q.shape[1])[:, None] - torch.arange(k.shape[1])
    return scores.masked_fill(behind < 0, -torch.inf), c


def weighed(p, c, v):
    """Outputs from probabilities, no value having a part in rows that may not see it."""
    o = (p.unsqueeze(-1) * torch.where(p.unsqueeze(-1) > 0, c.unsqueeze(2), 0)).sum(3)
    return o.transpose(1, 2).to(v.dtype)


def attention_by_log_sum_exp(q, k, v, scale=None):
    """Attention: probabilities e^{s - log Σ e^s}."""
    scores, c = seen_scores(q, k, v, scale, before=True)
    total = scores.logsumexp(-1, keepdim=True) if k.shape[1] else scores.sum(-1, keepdim=True)
    return weighed((scores - torch.where(total == -torch.inf, 0, total)).exp(), c, v)


def attention_by_log_sum_exp_in_base_two(q, k, v, scale=None):
    """Attention: probabilities 2^{s log₂e - L log₂e}, L the log-sum-exp in natural logs, as backward passes have them again."""
    scores, c = seen_scores(q, k, v, scale)
    total = scores.logsumexp(-1, keepdim=True) if k.shape[1] else scores.sum(-1, keepdim=True)
    return weighed((scores * LOG2E - torch.where(total == -torch.inf, 0, total) * LOG2E).exp2(), c, v)


def attention_in_blocks(q, k, v, scale=None):
    """Attention block by block: powers of two, log₂e in the scale, the maximum of a block scaled apart from the change of two."""
    factor = (q.shape[-1] ** -0.5 if scale is None else scale) * LOG2E
    scores, c = seen_scores(-q if factor < 0 else q, k, v, 1.0)
    factor = abs(factor)
    o, total = scores.new_zeros(*scores.shape[:3], c.shape[-1]), scores.new_zeros(scores.shape[:3])
    most = torch.full_like(total, -torch.inf)
    for a in range(0, k.shape[1], BLOCK):
        s, x = scores[..., a : a + BLOCK], c[:, :, a : a + BLOCK]
        new = torch.maximum(most, s.amax(-1))
        safe, seen = torch.where(new == -torch.inf, 0, new), s > -torch.inf
        kept = torch.where(most == -torch.inf, 0, (torch.where(most == -torch.inf, 0, most - safe) * factor).exp2())
        p = torch.where(seen, (torch.where(seen, s, 0) * factor - (safe * factor).unsqueeze(-1)).exp2(), 0)
        part = (p.unsqueeze(-1) * torch.where(p.unsqueeze(-1) > 0, x.unsqueeze(2), 0)).sum(3)
        o, total, most = o * kept.unsqueeze(-1) + part, total * kept + p.sum(-1), new
    return (o / torch.where(total > 0, total, 1).unsqueeze(-1)).transpose(1, 2).to(v.dtype)


def delta_by_solves(q, k, v, g, beta, scale, initial_state, short=None, size=64):
    """Delta rules in chunks: u = X (βv - βe^G k S), X = (I + tril(β k kᵀ e^{G_i - G_j}))^{-1}; ``short`` is what operands have."""
    a, b, c, gate, strength, s = wide(q, k, v, g, beta, initial_state)
    heads = v.shape[2]

    def cast(x):
        return x if short is None else x.to(short).to(x.dtype)

    a, b, c = (head_first(x, heads) for x in (queries(a, scale), b, c))
    strength, gate = (None if x is None else x.transpose(1, 2) for x in (strength, gate))
    s = a.new_zeros(len(a), heads, a.shape[-1], c.shape[-1]) if s is None else s
    out = []
    for at in range(0, q.shape[1], size):
        x, y, z, w = (m[:, :, at : at + size] for m in (a, b, c, strength))
        n = x.shape[2]
        logs = x.new_zeros(x.shape[:3]) if gate is None else gate[:, :, at : at + size]
        between = logs.unsqueeze(-1).expand(*logs.shape, n).tril(-1).cumsum(-2)
        decay = between.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).exp()
        first, last = logs.cumsum(-1).exp().unsqueeze(-1), decay[..., -1, :].unsqueeze(-1)
        w = w.unsqueeze(-1)
        lower = (cast(w * y) @ cast(y).mT * decay).tril(-1)
        solve = torch.linalg.solve_triangular(torch.eye(n).to(x) + lower, torch.eye(n).to(x).expand_as(lower), upper=False)
        moved, kept = cast(solve) @ cast(w * y * first), cast(solve) @ cast(w * z)
        written = kept - cast(moved) @ cast(s)
        out.append(cast(x * first) @ cast(s) + cast(cast(x) @ cast(y).mT * decay) @ cast(written))
        s = s * first[..., -1:, :] + cast(y * last).mT @ cast(written)
    return torch.cat(out, 2) if out else c * a.sum(-1, keepdim=True), s.clone()


def delta_in_chunks(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    return answered(*delta_by_solves(q, k, v, None, beta, scale, initial_state), v, output_final_state)


def gated_delta_in_chunks(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False):
    return answered(*delta_by_solves(q, k, v, g, beta, scale, initial_state), v, output_final_state)


def delta_on_short_operands(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    """As tensor cores: every product has operands of 16 bits, which is to be declared."""
    return answered(*delta_by_solves(q, k, v, None, beta, scale, initial_state, torch.bfloat16), v, output_final_state)


def gated_delta_on_short_operands(q, k, v, g, beta, scale=None, initial_state=None, output_final_state=False):
    return answered(*delta_by_solves(q, k, v, g, beta, scale, initial_state, torch.bfloat16), v, output_final_state)


def gated_retention_in_base_two(q, k, v, g, scale=None, initial_state=None, output_final_state=False):
    """Gated retention in chunks, its decays 2^{g log₂e}, summed between each two tokens."""
    a, b, c, gate, s = wide(q, k, v, g, initial_state)
    a, b, c = (head_first(x, v.shape[2]) for x in (queries(a, scale), b, c))
    gate = gate.transpose(1, 2) * LOG2E
    s = a.new_zeros(*a.shape[:2], a.shape[-1], c.shape[-1]) if s is None else s
    out = []
    for at in range(0, q.shape[1], BLOCK):
        x, y, z, logs = (m[:, :, at : at + BLOCK] for m in (a, b, c, gate))
        n = x.shape[2]
        between = logs.unsqueeze(-1).expand(*logs.shape, n).tril(-1).cumsum(-2)
        decay = between.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).exp2()
        first, last = logs.cumsum(-1).exp2().unsqueeze(-1), decay[..., -1, :].unsqueeze(-1)
        out.append((x @ y.mT * decay) @ z + x * first @ s)
        s = s * first[..., -1:, :] + (y * last).mT @ z
    return answered(torch.cat(out, 2) if out else c * a.sum(-1, keepdim=True), s.clone(), v, output_final_state)


def retention_by_real_powers(q, k, v, scale=None, g_gamma=None, initial_state=None, output_final_state=False):
    """Retention in parallel, its decays γ^{i - j} by powers of a number."""
    a, b, c, s, g = wide(q, k, v, initial_state, g_gamma)
    heads, steps = v.shape[2], q.shape[1]
    g = torch.log1p(-torch.exp2(-5.0 - torch.arange(q.shape[2]).to(a))) if g is None else g
    gamma = g.exp().repeat_interleave(heads // q.shape[2])[:, None, None]
    a, b, c = (head_first(x, heads) for x in (queries(a, scale), b, c))
    s = a.new_zeros(len(a), heads, a.shape[-1], c.shape[-1]) if s is None else s
    at = torch.arange(steps).to(a)
    age = at[:, None] - at
    scores = torch.where(age >= 0, a @ b.mT * gamma ** age.clamp(min=0), 0)
    o = scores @ c + gamma ** (at[:, None] + 1) * (a @ s)
    state = (b * gamma ** (steps - 1 - at)[:, None]).mT @ c + gamma**steps * s
    return answered(o, state, v, output_final_state)


def selective_in_base_two(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None, return_last_state=False
):
    """The selective scan token by token: A log₂e once, decays 2^{Δ A}, as a fused kernel has them."""
    dtype = u.dtype
    u, delta, A, B, C, D, z, delta_bias, h = wide(u, delta, A, B, C, D, z, delta_bias, initial_state)
    A = A * LOG2E
    delta = delta if delta_bias is None else delta + delta_bias[:, None]
    delta = torch.where(delta <= 20, delta.clamp(max=20).exp().log1p(), delta) if delta_softplus else delta

    def at(x, t):
        x = x[None, :, :, None] if x.ndim == 2 else x.unsqueeze(1) if x.ndim == 3 else x
        x = x[..., min(t, x.shape[-1] - 1)]
        return x.repeat_interleave(u.shape[1] // x.shape[1], 1) if x.shape[0] != 1 or x.shape[1] != u.shape[1] else x

    h = u.new_zeros(*u.shape[:2], A.shape[1]) if h is None else h.clone()
    rows = []
    for t in range(u.shape[-1]):
        step = delta[..., t].unsqueeze(-1)
        h = (step * A).exp2() * h + at(B, t) * (step * u[..., t].unsqueeze(-1))
        rows.append((h * at(C, t)).sum(-1))
    y = torch.stack(rows, -1) if rows else u * 0
    y = y if D is None else y + D[:, None] * u
    y = y if z is None else y * (z * z.sigmoid())
    return (y.to(dtype), h) if return_last_state else y.to(dtype)


def segments(g):
    """(…, n) as (…, n + 1, n + 1): the sum of entries j..i - 1, each segment on its own, -∞ where i < j."""
    n = g.shape[-1] + 1
    rows = pad(g, (1, 0)).unsqueeze(-1).expand(*g.shape[:-1], n, n)
    return rows.tril(-1).cumsum(-2).masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)


def behind(n, strictly=False):
    """Which of n tokens a row sees."""
    return torch.ones(n, n, dtype=torch.bool).tril(-1 if strictly else 0)


def seen_alone(weights, seen, x):
    """Σ_j weights (…, i, j) x_j (…, j, v), of what a row sees and of nothing else."""
    return torch.where(seen.unsqueeze(-1), weights.unsqueeze(-1) * x.unsqueeze(-3), 0).sum(-2)


def gated_retention_by_segments(q, k, v, g, scale=None, initial_state=None, output_final_state=False):
    """Gated retention as state space duality has it: every chunk alone, then the states of all chunks by the segments of their sums."""
    a, b, c, gate, s = wide(q, k, v, g, initial_state)
    a, b, c = (head_first(x, v.shape[2]) for x in (queries(a, scale), b, c))
    s = a.new_zeros(*a.shape[:2], a.shape[-1], c.shape[-1]) if s is None else s
    within, own, sums, states = [], [], [], [s]
    for at in range(0, q.shape[1], BLOCK):
        x, y, z = (m[:, :, at : at + BLOCK] for m in (a, b, c))
        logs = gate[:, at : at + BLOCK].transpose(1, 2)
        decay, n = segments(logs).exp(), x.shape[2]
        within.append(seen_alone(x @ y.mT * decay[..., 1:, 1:], behind(n), z))
        own.append(x * decay[..., 1:, :1])
        states.append((y * decay[..., -1, 1:].unsqueeze(-1)).mT @ z)
        sums.append(logs.sum(-1))
    between = segments(torch.stack(sums, -1)).exp() if sums else s.new_ones(*s.shape[:2], 1, 1)
    flat = torch.stack([x.flatten(2) for x in states], 2)
    entered = seen_alone(between, behind(len(states)), flat).unflatten(-1, s.shape[2:]).unbind(2)
    out = [o + x @ e for o, x, e in zip(within, own, entered, strict=False)]
    return answered(torch.cat(out, 2) if out else c * a.sum(-1, keepdim=True), entered[-1].clone(), v, output_final_state)


def added(x, y):
    """log(e^x + e^y), -∞ among them."""
    top = torch.maximum(x, y).detach()
    safe = torch.where(top == -torch.inf, 0, top)
    total = (x - safe).exp() + (y - safe).exp()
    return torch.where(total > 0, torch.where(total > 0, total, 1).log() + safe, -torch.inf)


def gated_retention_in_logs(q, k, v, g, scale=None, initial_state=None, output_final_state=False):
    """Gated retention by a scan of logarithms, of what is positive and of what is negative apart, in log₂ t rounds.

    By cumulative sums, A + log Σ e^{log b - A} with A = Σ g, none is right for all inputs: those have lost the digits of weak gates
    behind strong ones, and are ∞ - ∞ behind a reset. So forward values are right; but no bit is exact that has been a logarithm,
    and no gradient passes a write that is 0.
    """
    a, b, c, gate, s = wide(q, k, v, g, initial_state)
    a, b, c = (head_first(x, v.shape[2]).movedim(2, 0) for x in (queries(a, scale), b, c))
    writes, logs = b.unsqueeze(-1) * c.unsqueeze(-2), gate.movedim(1, 0)[..., None, None]
    size = writes.abs()
    size = torch.where(size > 0, torch.where(size > 0, size, 1).log(), -torch.inf)
    above, below = (torch.where(x > 0, size, -torch.inf) for x in (writes, -writes))
    span = 1
    while span < len(logs):
        above, below = (torch.cat([x[:span], added(logs[span:] + x[:-span], x[span:])]) for x in (above, below))
        logs = torch.cat([logs[:span], logs[span:] + logs[:-span]])
        span *= 2
    states = above.exp() - below.exp() + (0 if s is None else logs.exp() * s)
    last = states[-1] if len(states) else writes.new_zeros(writes.shape[1:]) if s is None else s
    return answered(torch.einsum("tbhk,tbhkv->bhtv", a, states), last.clone(), v, output_final_state)


def wkv_in_blocks(k, v, w, u, initial_state=None, output_final_state=False):
    """WKV block by block: rows of a block under the maximum of what they see, the sums of earlier blocks under a running one."""
    dtype = v.dtype
    k, v, w, u, s = wide(k, v, w, u, initial_state)
    nothing = k.new_zeros(len(k), k.shape[2])
    a, b, p = (nothing, nothing, nothing - torch.inf) if s is None else s.unbind(1)
    out = []

    def aged(x, tokens):
        return x + torch.where(tokens == 0, 0, tokens * w)

    def summed(exponents, values, start):
        """Σ e^x v, of the start and of tokens (…, j, C), under the largest x, and that."""
        top = exponents.amax(-2, keepdim=True).detach()
        weights = torch.where(exponents == -torch.inf, 0, exponents - torch.where(top == -torch.inf, 0, top)).exp()
        weights = torch.where(exponents == -torch.inf, 0, weights)
        terms = torch.where(weights[..., 1:, :] > 0, weights[..., 1:, :] * values, 0).sum(-2)
        return terms + weights[..., 0, :] * start, weights[..., 1:, :].sum(-2), weights[..., 0, :], top.squeeze(-2)

    for at in range(0, k.shape[1], BLOCK):
        x, y = (m[:, at : at + BLOCK] for m in (k, v))
        n = x.shape[1]
        rows = torch.arange(n + 1).to(k)
        age = (rows[:, None] - 1 - rows[:n])[..., None]
        found = torch.where(age >= 0, aged(x.unsqueeze(1), age.clamp(min=0)), -torch.inf)
        read = torch.where(torch.eye(n, dtype=torch.bool)[..., None], (u + x).unsqueeze(1), found[:, :n])
        start = aged(p.unsqueeze(1), rows[:, None]).unsqueeze(2)
        above, below, kept, _ = summed(torch.cat([start[:, :n], read], 2), y.unsqueeze(1), a.unsqueeze(1))
        out.append(above / (below + kept * b.unsqueeze(1)))
        above, below, kept, p = summed(torch.cat([start[:, n], found[:, n]], 1), y, a)
        a, b = above, below + kept * b
    o = (torch.cat(out, 1) if out else v).to(dtype)
    return (o, torch.stack([a, b, p], 1)) if output_final_state else o


def wkv6_by_segments(q, k, v, w, u, scale=None, initial_state=None, output_final_state=False):
    """RWKV-6 in chunks, the decays of every channel and segment summed on their own."""
    a, b, c, logs, bonus, s = wide(q, k, v, w, u, initial_state)
    heads = v.shape[2]
    a, b, c, logs = (head_first(x, heads) for x in (queries(a, scale), b, c, logs))
    bonus = bonus.repeat_interleave(heads // q.shape[2], 0).unsqueeze(1)
    s = a.new_zeros(*a.shape[:2], a.shape[-1], c.shape[-1]) if s is None else s
    out = []
    for at in range(0, q.shape[1], BLOCK):
        x, y, z, g = (m[:, :, at : at + BLOCK] for m in (a, b, c, logs))
        decay, n = segments(g.mT).exp().movedim(2, -1), x.shape[2]
        weights = (x.unsqueeze(3) * y.unsqueeze(2) * decay[:, :, :n, 1:]).sum(-1)
        own = (x * bonus * y).sum(-1, keepdim=True) * z
        out.append(seen_alone(weights, behind(n, strictly=True), z) + own + (x * decay[:, :, :n, 0]) @ s)
        s = decay[:, :, n, 0].unsqueeze(-1) * s + (y * decay[:, :, n, 1:]).mT @ z
    return answered(torch.cat(out, 2) if out else c * a.sum(-1, keepdim=True), s.clone(), v, output_final_state)


ORDERS = {
    "attention": (attention_by_log_sum_exp, attention_by_log_sum_exp_in_base_two, attention_in_blocks),
    "delta-rule": (delta_in_chunks,),
    "gated-delta-rule": (gated_delta_in_chunks,),
    "gated-retention": (gated_retention_in_base_two, gated_retention_by_segments),
    "retention": (retention_by_real_powers,),
    "selective-scan": (selective_in_base_two,),
    "wkv": (wkv_in_blocks,),
    "wkv6": (wkv6_by_segments,),
}
MASKED_LATE = (attention_in_blocks, delta_in_chunks, gated_delta_in_chunks, gated_retention_in_base_two, retention_by_real_powers)
"""Those that mask a product after it is computed, through which 0 · NaN comes: they declare it."""
