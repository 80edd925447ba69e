"""A stack of layers in plain torch, method by method, for faults to change one."""

import torch
from torch.nn.functional import layer_norm


class Plain:
    """Without a mask of causality, an encoder; in float64, whatever the dtype of the tokens."""

    causal = False

    @property
    def __name__(self):
        return type(self).__name__

    def __call__(self, x, memory=None, memory_mask=None, mask=None, pre_norm=True, base=None, window_size=None, eps=1e-5, **weights):
        self.eps, self.base, self.window, self.mask, self.memory_mask = eps, base, window_size, mask, memory_mask
        w = {name: a.double() for name, a in weights.items()}
        read = None if memory is None else self.source(memory.double())
        y = x.double()
        for n in range(len(w["q"])):
            layer = {name: a[n] for name, a in w.items() if not name.startswith("end")}
            for norm, mix in enumerate(self.mixers(layer, read)):
                y = self.residual(norm, y, mix, lambda a, n=norm, of=layer: self.norm(a, of["gain"][n], of["shift"][n]), pre_norm)
        return (self.norm(y, w["end_gain"], w["end_shift"]) if "end_gain" in w else y).to(x.dtype)

    def mixers(self, w, read):
        own = [w[name] for name in "qkvo"]
        yield lambda y: self.attend(y, y, own, self.seen(y), self.positions(y))
        if read is not None:
            cross = [w[f"cross_{name}"] for name in "qkvo"]
            yield lambda y: self.attend(y, read, cross, self.sight(y, read), None)
        yield lambda y: (y @ w["up"] + w["up_bias"]).relu() @ w["down"] + w["down_bias"]

    def residual(self, number, y, mix, norm, pre_norm):
        return y + mix(norm(y)) if pre_norm else norm(y + mix(y))

    def norm(self, y, gain, shift):
        return layer_norm(y, y.shape[-1:], gain, shift, self.eps)

    def source(self, memory):
        return memory

    def seen(self, y):
        t = y.shape[1]
        distance = torch.arange(t)[:, None] - torch.arange(t)
        near = (distance >= 0) & (distance < (self.window or t)) if self.causal else torch.ones(t, t, dtype=torch.bool)
        return near.expand(len(y), t, t) if self.mask is None else near & self.mask[:, None]

    def sight(self, y, read):
        shape = (len(y), y.shape[1], read.shape[1])
        return torch.ones(shape, dtype=torch.bool) if self.memory_mask is None else self.memory_mask[:, None].expand(shape)

    def positions(self, y):
        return torch.arange(y.shape[1]).expand(y.shape[:2]) if self.mask is None else self.mask.cumsum(1) - 1

    def turn(self, y, position):
        if self.base is None or position is None:
            return y
        half = y.shape[-1] // 2
        angle = (position[..., None] * self.base ** (-torch.arange(half).double() / half))[:, :, None]
        a, b = y[..., :half], y[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def repeat(self, y, groups):
        return y.repeat_interleave(groups, 2)

    def weigh(self, scores, seen):
        return scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1).nan_to_num()

    def attend(self, y, read, weights, seen, position):
        wq, wk, wv, wo = weights
        q, k, v = (torch.einsum("btm,mhd->bthd", a, w) for a, w in ((y, wq), (read, wk), (read, wv)))
        k, v = (a.masked_fill(a.isnan() & ~seen.any(1)[:, :, None, None], 0) for a in (k, v))
        q, k = self.turn(q, position), self.turn(k, position)
        k, v = (self.repeat(a, q.shape[2] // k.shape[2]) for a in (k, v))
        p = self.weigh(torch.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5, seen)
        return torch.einsum("bhts,bshv,hvm->btm", p, v, wo)


class Causal(Plain):
    """A decoder."""

    causal = True
