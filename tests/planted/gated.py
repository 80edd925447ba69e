"""Memories with decays, small and slow: right ones, of which faults/gates.py makes wrong ones by changing one part.

Inside, tensors have time first: q, k (T, B, HV, K), v (T, B, HV, V), logs of decays gk like k and gv like v, beta
(T, B, HV, 1) or None; a state is (B, HV, K, V).
"""

import inspect
from dataclasses import dataclass
from itertools import pairwise

import torch

GATES = {
    "retention": ("g_gamma",),
    "gated-retention": ("g",),
    "gated-linear-attention": ("gk", "gv"),
    "gated-delta-rule": ("g", "beta"),
}
NORMED = dict.fromkeys(GATES, ()) | {"gated-delta-rule": ("use_qk_l2norm_in_kernel",)}


@dataclass
class Tokens:
    """The tokens of a call, every value head with its own."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    gk: torch.Tensor
    gv: torch.Tensor
    beta: torch.Tensor | None

    def part(self, a, b):
        return Tokens(*(None if x is None else x[a:b] for x in vars(self).values()))

    def __len__(self):
        return len(self.q)


class Loop:
    """Token by token. Every method is one part of the computation that a fault can replace."""

    def __init__(self, name, **call):
        self.name, self.call = name, call
        wide = [x.dtype for x in call.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
        self.dtype = torch.float64 if torch.float64 in wide else torch.float32

    # what goes in

    def wide(self, x):
        return x.to(self.dtype)

    def heads(self, x):
        """(B, T, H, …) of the query heads as (B, T, HV, …)."""
        return x.repeat_interleave(self.call["v"].shape[2] // self.call["q"].shape[2], 2)

    def gate_heads(self, x):
        return self.heads(x)

    def default(self, heads):
        """The logs of the decays of retention where none are given."""
        return torch.log1p(-(2.0 ** (-5.0 - torch.arange(heads, dtype=self.dtype))))

    def logs(self, g):
        return g

    def norm(self, x):
        return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() if self.call.get("use_qk_l2norm_in_kernel") else x

    def strength(self, beta, k):
        return beta

    def tokens(self):
        call = self.call
        q, k, v = (self.wide(call[n]) for n in "qkv")
        b, t, h, width = q.shape
        gv = torch.zeros_like(v)
        if self.name == "retention":
            given = call.get("g_gamma")
            g = self.default(h) if given is None else self.wide(given)
            gk = self.gate_heads(g[None, None, :, None].expand(b, t, h, width))
        elif self.name == "gated-linear-attention":
            gk = self.gate_heads(self.wide(call["gk"]))
            gv = self.wide(call["gv"]) if call.get("gv") is not None else gv
        else:
            gk = self.wide(call["g"]).unsqueeze(-1).expand(b, t, v.shape[2], width)
        q, k = (self.heads(self.norm(x)) for x in (q, k))
        beta = self.strength(self.wide(call["beta"]).unsqueeze(-1), k) if "beta" in call else None
        factor = width**-0.5 if call.get("scale") is None else call["scale"]
        found = Tokens(q * factor, k, v, self.logs(gk), self.logs(gv), beta)
        return Tokens(*(None if x is None else x.movedim(1, 0) for x in vars(found).values()))

    # one sequence

    def decay(self, g):
        return g.exp()

    def fade(self, s, x, t):
        return self.decay(x.gk[t]).unsqueeze(-1) * s * self.decay(x.gv[t]).unsqueeze(-2)

    def write(self, faded, s, x, t):
        """What token t writes beside its key, where the state was s and has faded."""
        return x.v[t] if x.beta is None else x.beta[t] * (x.v[t] - self.find(x.k[t], faded))

    def find(self, k, s):
        return (k.unsqueeze(-2) @ s).squeeze(-2)

    def update(self, s, x, t):
        faded = self.fade(s, x, t)
        return faded + x.k[t].unsqueeze(-1) * self.write(faded, s, x, t).unsqueeze(-2)

    def read(self, new, old, x, t):
        return self.find(x.q[t], new)

    def last(self, s, x, t):
        """The state that is handed out after t tokens."""
        return s

    def sequence(self, x, s):
        out = []
        for t in range(len(x)):
            new = self.update(s, x, t)
            out.append(self.read(new, s, x, t))
            s = new
        return out, self.last(s, x, len(x))

    # what comes out

    def start(self, n, x):
        given = self.call.get("initial_state")
        shape = (n, x.v.shape[2], x.k.shape[-1], x.v.shape[-1])
        return x.q.new_zeros(shape) if given is None else self.wide(given).clone()

    def enter(self, s, x, a):
        """The state with which the packed sequence that begins at a is entered."""
        return s

    def result(self, out, state):
        return out.to(self.call["v"].dtype), state

    def __call__(self):
        x, offsets = self.tokens(), self.call.get("cu_seqlens")
        if offsets is None:
            out, state = self.sequence(x, self.start(x.q.shape[1], x))
        else:
            ends = offsets.tolist()
            states = self.start(len(ends) - 1, x)
            empty = [x.v.new_zeros(x.v.shape[1:])]
            out, found = empty * ends[0], []
            for n, (a, b) in enumerate(pairwise(ends)):
                rows, s = self.sequence(x.part(a, b), self.enter(states[n : n + 1], x, a))
                out, found = out + rows, [*found, s]
            out, state = out + empty * (len(x) - ends[-1]), torch.cat(found)
        rows = torch.stack(out, 1) if out else (x.v * x.q.sum(-1, keepdim=True)).movedim(0, 1)
        out, state = self.result(rows, state)
        return out, state if self.call["output_final_state"] else None


class Chunks(Loop):
    """Chunk by chunk, with the state carried in between."""

    def between(self, g):
        """(C + 1, C + 1, …): the sum of the logs of tokens j + 1..i of a chunk, -∞ where i < j; each a sum of its own."""
        size = len(g) + 1
        after = torch.ones(size, size, dtype=torch.bool).tril(-1)
        rows = torch.cat([g[:1] * 0, g]).unsqueeze(1).expand(size, size, *g.shape[1:])
        kept = torch.where(after.view(size, size, *[1] * (g.ndim - 1)), rows, 0).cumsum(0)
        return kept.masked_fill(~(after | torch.eye(size, dtype=torch.bool)).view(size, size, *[1] * (g.ndim - 1)), -torch.inf)

    def decays(self, g):
        return self.decay(self.between(g))

    def carry(self, s):
        return s

    def operand(self, x):
        """What a write is multiplied from."""
        return x

    def chunk(self, x, s):
        keys, values = self.decays(x.gk), self.decays(x.gv)
        out, written = [], []

        def found(row, i, upto):
            """A row times the state after i tokens, of which the writes of the first ``upto`` count."""
            total = self.find(row * keys[i, 0], s) * values[i, 0]
            for j in range(upto):
                total = total + (row * x.k[j] * keys[i, j + 1]).sum(-1, keepdim=True) * written[j] * values[i, j + 1]
            return total

        for t in range(len(x)):
            written.append(x.v[t] if x.beta is None else x.beta[t] * (x.v[t] - found(x.k[t], t + 1, t)))
            out.append(found(x.q[t], t + 1, t + 1))
        new = keys[-1, 0].unsqueeze(-1) * s * values[-1, 0].unsqueeze(-2)
        for j, u in enumerate(written):
            new = new + self.operand(x.k[j] * keys[-1, j + 1]).unsqueeze(-1) * self.operand(u * values[-1, j + 1]).unsqueeze(-2)
        return out, new

    def sequence(self, x, s):
        out, size = [], self.call.get("chunk_size") or 64
        for a in range(0, len(x), size):
            rows, s = self.chunk(x.part(a, a + size), s)
            out, s = out + rows, self.carry(s)
        return out, self.last(s, x, len(x))


def signature(names, needed):
    """Keyword arguments, of which those not needed are None by default."""
    kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(n, kind, default=empty if n in needed else None) for n in names])


def form(kind, name, without=()):
    """The plain call of an operator, computed by a kind of loop; ``without`` are arguments that it does not have."""

    def call(**given):
        return kind(name, **{"output_final_state": False} | given)()

    options = ("scale", "initial_state", "output_final_state", "cu_seqlens", "chunk_size", *NORMED[name])
    call.__name__ = call.__qualname__ = kind.__name__
    call.__signature__ = signature([n for n in ("q", "k", "v", *GATES[name], *options) if n not in without], ("q", "k", "v"))
    return call


def step(kind, name):
    """One token, by a kind of loop."""

    def call(state=None, **given):
        one = {n: x.unsqueeze(1) if isinstance(x, torch.Tensor) and n != "g_gamma" else x for n, x in given.items()}
        out, new = kind(name, **one, initial_state=state, output_final_state=True)()
        return out.squeeze(1), new

    call.__signature__ = signature(("q", "k", "v", *GATES[name], "state", "scale", *NORMED[name]), ("q", "k", "v"))
    return call
