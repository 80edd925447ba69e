"""RWKV, small and slow: right loops, of which faults/rwkv.py makes wrong ones by changing one part.

Inside, a token of the mean is k, v (B, C), its state a, b and p; one of a memory has (B, HV, …), its state is (B, HV, K, V).
"""

from itertools import pairwise

import torch

from .gated import signature

ARGUMENTS = {"wkv": ("k", "v", "w", "u"), "wkv6": ("q", "k", "v", "w", "u"), "wkv7": ("q", "k", "v", "w", "a", "b")}
OPTIONS = {"wkv": ("initial_state", "output_final_state")} | dict.fromkeys(
    ("wkv6", "wkv7"), ("scale", "initial_state", "output_final_state", "cu_seqlens", "chunk_size")
)


class Loop:
    """Token by token. Every method is one part of the computation that a fault can replace."""

    def __init__(self, name, **call):
        self.name, self.call = name, call
        wide = [x.dtype for x in call.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
        self.dtype = torch.float64 if torch.float64 in wide else torch.float32

    def wide(self, x):
        return x.to(self.dtype)

    def log(self, w):
        return w

    def bonus(self, u, w):
        return u

    def begin(self, start):
        return start

    def last(self, state):
        """The state that is handed out."""
        return state

    def result(self, out, state):
        return out.to(self.call["v"].dtype), state

    def sequence(self, tokens, state):
        out = []
        for n in range(len(tokens[0])):
            token = [x[n] for x in tokens]
            new = self.update(state, *token)
            out.append(self.read(state, new, *token))
            state = new
        return out, self.last(state)


class Mean(Loop):
    """WKV."""

    def key(self, k):
        return k

    def maximum(self, p, w, k):
        return torch.maximum(p + w, k)

    def weight(self, x):
        return x.exp()

    def kept(self, p, w, new):
        """The exponent of what is left of the sums."""
        return p + w - new

    def update(self, state, k, v):
        a, b, p = state
        w = self.log(self.wide(self.call["w"]))
        new = self.maximum(p, w, k).detach()
        kept, entering = self.weight(self.kept(p, w, new)), self.weight(k - new)
        return kept * a + entering * v, kept * b + entering, new

    def read(self, old, new, k, v):
        a, b, p = old
        own = self.bonus(self.wide(self.call["u"]), self.log(self.wide(self.call["w"]))) + k
        shift = torch.maximum(p, own).detach()
        kept, entering = self.weight(p - shift), self.weight(own - shift)
        return (kept * a + entering * v) / (kept * b + entering)

    def __call__(self):
        k, v = (self.wide(self.call[n]).movedim(1, 0) for n in "kv")
        given = self.call.get("initial_state")
        nothing = k.new_zeros(k.shape[1:])
        start = (nothing, nothing, nothing - torch.inf) if given is None else self.wide(given).unbind(1)
        out, state = self.sequence((self.key(k), v), self.begin(start))
        rows = torch.stack(out, 1) if out else self.wide(self.call["v"])
        out, state = self.result(rows, torch.stack(state, 1))
        return (out, state) if self.call["output_final_state"] else out


class Memory(Loop):
    """RWKV-6 and RWKV-7."""

    def heads(self, x):
        """(…, H, …) of the query heads as (…, HV, …), the heads in axis 2."""
        return x.repeat_interleave(self.call["v"].shape[2] // self.call["q"].shape[2], 2)

    def decay(self, w):
        return self.log(w).exp()

    def update(self, s, q, k, v, w, *rest):
        write = k.unsqueeze(-1) * v.unsqueeze(-2)
        faded = self.decay(w).unsqueeze(-1) * s
        if self.name == "wkv6":
            return faded + write
        a, b = rest
        return faded + b.unsqueeze(-1) * self.find(a, s, faded).unsqueeze(-2) + write

    def find(self, a, s, faded):
        """What a finds, where the state was s and has faded."""
        return (a.unsqueeze(-2) @ s).squeeze(-2)

    def read(self, old, new, q, k, v, w, *rest):
        if self.name == "wkv7":
            return (q.unsqueeze(-2) @ new).squeeze(-2)
        u = self.bonus(rest[0], w)
        return (q.unsqueeze(-2) @ old).squeeze(-2) + (q * u * k).sum(-1, keepdim=True) * v

    def enter(self, states, n):
        """The state with which packed sequence n is entered."""
        return states[n : n + 1]

    def __call__(self):
        call = self.call
        names = [n for n in ARGUMENTS[self.name] if n not in ("v", "u")]
        wide = {n: self.heads(self.wide(call[n])) for n in names} | {"v": self.wide(call["v"])}
        if "u" in call:
            wide["u"] = self.heads(self.wide(call["u"])[None, None]).expand(*wide["q"].shape)
        factor = call["q"].shape[-1] ** -0.5 if call.get("scale") is None else call["scale"]
        wide["q"] = wide["q"] * factor
        tokens = [wide[n].movedim(1, 0) for n in ARGUMENTS[self.name]]
        offsets, given = call.get("cu_seqlens"), call.get("initial_state")
        ends = None if offsets is None else offsets.tolist()
        n = len(call["v"]) if ends is None else len(ends) - 1
        shape = (n, call["v"].shape[2], call["k"].shape[-1], call["v"].shape[-1])
        states = self.begin(wide["q"].new_zeros(shape) if given is None else self.wide(given).clone())
        if ends is None:
            out, state = self.sequence(tokens, states)
        else:
            empty = [wide["v"].new_zeros(1, *call["v"].shape[2:])]
            out, found = empty * ends[0], []
            for m, (a, b) in enumerate(pairwise(ends)):
                rows, s = self.sequence([x[a:b] for x in tokens], self.enter(states, m))
                out, found = out + rows, [*found, s]
            out, state = out + empty * (len(tokens[0]) - ends[-1]), torch.cat(found)
        out, state = self.result(torch.stack(out, 1) if out else wide["v"] * wide["q"].sum(-1, keepdim=True), state)
        return out, state if call["output_final_state"] else None


def form(kind, name):
    """The plain call of an operator, computed by a kind of loop."""

    def call(**given):
        return kind(name, **{"output_final_state": False} | given)()

    call.__name__ = call.__qualname__ = kind.__name__
    call.__signature__ = signature((*ARGUMENTS[name], *OPTIONS[name]), ARGUMENTS[name])
    return call


def step(kind, name):
    """One token, by a kind of loop."""

    def call(state=None, **given):
        timeless = ("w", "u") if name == "wkv" else ("u",)
        one = {n: x.unsqueeze(1) if isinstance(x, torch.Tensor) and n not in timeless else x for n, x in given.items()}
        out, new = kind(name, **one, initial_state=state, output_final_state=True)()
        return out.squeeze(1), new

    options = ("state",) if name == "wkv" else ("state", "scale")
    call.__signature__ = signature((*ARGUMENTS[name], *options), ARGUMENTS[name])
    return call
