"""Faulty forms of RWKV: each law must see those of its kind, at both scales; right siblings hold."""

import torch

from ..planting import Backward
from ..recurring import Mean, Memory

# the mean --------------------------------------------------------------------------------------------


class BonusDecays(Mean):
    def bonus(self, u, w):
        return u + w.clamp(min=-1e4)


class NoBonus(Mean):
    def bonus(self, u, w):
        return 0 * u


class BonusForEveryChannel(Mean):
    def bonus(self, u, w):
        return u[:1].expand_as(u)


class ReadAfterTheUpdate(Mean):
    def read(self, old, new, k, v):
        return new[0] / new[1]


class CurrentTokenTwice(Mean):
    def read(self, old, new, k, v):
        return super().read(new, new, k, v)


class ReadThroughTheDecay(Mean):
    def read(self, old, new, k, v):
        a, b, p = old
        return super().read((a, b, p + self.wide(self.call["w"])), new, k, v)


class DecaysTwice(Mean):
    def log(self, w):
        return 2 * w


class DecayIsNotALog(Mean):
    """e^{-e^w}, as the trained parameter of the paper enters."""

    def log(self, w):
        return -w.exp()


class NoRescale(Mean):
    """The sums stay as they are when the maximum moves."""

    def kept(self, p, w, new):
        return torch.where(p == -torch.inf, -torch.inf, w + 0 * new)


class NoMaximum(Mean):
    """Sums of e^k as they are: they overflow."""

    def maximum(self, p, w, k):
        return 0 * k


class ClampedKeys(Mean):
    def key(self, k):
        return k.clamp(-0.9, 60)


class KeysInHalfPrecision(Mean):
    def key(self, k):
        return k.to(torch.float16).to(torch.bfloat16).to(self.dtype)


class MaximumForgetsTheDecay(Mean):
    """The state is right as a triple, but p is no longer the running maximum."""

    def maximum(self, p, w, k):
        return torch.maximum(p, k)


class StateOnItsOwnScale(Mean):
    """a and b for p = 0: the same sums, another triple."""

    def last(self, state):
        a, b, p = state
        return a * p.exp(), b * p.exp(), 0 * b


class NumeratorForgotten(Mean):
    def last(self, state):
        return 0 * state[0], *state[1:]


class StartForgotten(Mean):
    def begin(self, start):
        a, b, p = start
        return 0 * a, 0 * b, p * 0 - torch.inf


class ScaleOfTheStartForgotten(Mean):
    def begin(self, start):
        a, b, p = start
        return a, b, torch.where(p == -torch.inf, p, 0.0)


class DecayDetached(Mean):
    def log(self, w):
        return w.detach()


class BonusDetached(Mean):
    def bonus(self, u, w):
        return u.detach()


class KeyOfTheWeightsOnly(Mean):
    """The gradient of the bonus is 0.4 % too large."""

    def bonus(self, u, w):
        return Backward.apply(u, 1.004)


class StartDetached(Mean):
    def begin(self, start):
        return tuple(x.detach() for x in start)


class ScaleOfTheStartDetached(Mean):
    def begin(self, start):
        return *start[:2], start[2].detach()


class LastStateDetached(Mean):
    def last(self, state):
        return tuple(x.detach() for x in state)


class LastStateLouder(Mean):
    def last(self, state):
        return *(Backward.apply(x, 1.004) for x in state[:2]), state[2]


class MaximumOfAllTimes(Mean):
    """Right for finite keys; a key to come that is not finite is seen at once."""

    def key(self, k):
        return k + 0 * k.sum(0, keepdim=True)


class NeighboursLeak(Mean):
    def key(self, k):
        return k + 1e-2 * k.roll(1, 1) if k.shape[1] > 1 else k


# what both kinds can do wrong --------------------------------------------------------------------------


def changed(base, change):
    """A kind of loop whose results are changed."""
    return type(change.__name__, (base,), {"result": lambda self, out, state: change(self, *base.result(self, out, state))})


def both(change):
    """Make of a change of (out, state) a fault of every operator."""
    mean, memory = (changed(base, change) for base in (Mean, Memory))
    return {"wkv": mean, "wkv6": memory, "wkv7": memory}


def zeros(self, out, state):
    return out * 0, state


def a_little_large(self, out, state):
    return out * (1.004 if out.dtype in (torch.float32, torch.float64) else 1.02), state


def half_precision(self, out, state):
    return (out.to(torch.bfloat16).to(out.dtype) if out.dtype != torch.bfloat16 else out * 1.02), state


def last_token_dropped(self, out, state):
    return torch.cat([out[:, :-1], 0 * out[:, -1:]], 1), state


def state_a_little_large(self, out, state):
    return out, state * 1.004


# the memories ----------------------------------------------------------------------------------------


class MemoryReadsAfter(Memory):
    def read(self, old, new, q, k, v, w, *rest):
        return super().read(new, new, q, k, v, w, *rest)


class MemoryReadsTheDecayedState(Memory):
    def read(self, old, new, q, k, v, w, *rest):
        faded = self.decay(w).unsqueeze(-1) * old
        return super().read(faded, faded + k.unsqueeze(-1) * v.unsqueeze(-2), q, k, v, w, *rest)


class MemoryWithoutBonus(Memory):
    def bonus(self, u, w):
        return torch.ones_like(u)


class MemoryBonusDecays(Memory):
    def bonus(self, u, w):
        return u * self.decay(w)


class WriteDecaysAtOnce(Memory):
    def update(self, s, q, k, v, w, *rest):
        return super().update(s, q, k * self.decay(w), v, w, *rest)


class CorrectionReadsTheDecayedState(Memory):
    def find(self, a, s, faded):
        return (a.unsqueeze(-2) @ faded).squeeze(-2)


class CorrectionForgotten(Memory):
    def find(self, a, s, faded):
        return 0 * super().find(a, s, faded)


class CorrectionSwapped(Memory):
    """b finds, and a is where it comes back."""

    def update(self, s, q, k, v, w, *rest):
        return super().update(s, q, k, v, w, *reversed(rest))


class DecayClamped(Memory):
    def log(self, w):
        return w.clamp(min=-5)


class InfinityTimesZero(Memory):
    def decay(self, w):
        return w.exp() + 0 * w


class DecayOfTheFirstChannel(Memory):
    def log(self, w):
        return w[..., :1].expand_as(w)


class MemoryInHalfPrecision(Memory):
    def update(self, s, q, k, v, w, *rest):
        return super().update(s.to(torch.bfloat16).to(s.dtype), q, k, v, w, *rest)


class MemoryStartForgotten(Memory):
    def begin(self, start):
        return 0 * start


class HeadsTiled(Memory):
    def heads(self, x):
        return x.repeat(1, 1, self.call["v"].shape[2] // self.call["q"].shape[2], 1)


class PackedStateLeaks(Memory):
    def sequence(self, tokens, state):
        out, last = super().sequence(tokens, state + getattr(self, "left", 0))
        self.left = 0.01 * last
        return out, last


class StateOfTheFirstSequence(Memory):
    def enter(self, states, n):
        return states[:1]


class MemoryGateDetached(Memory):
    def log(self, w):
        return w.detach()


class CorrectionDetached(Memory):
    def find(self, a, s, faded):
        return super().find(a, s.detach(), faded)


class MemoryStartDetached(Memory):
    def begin(self, start):
        return start.detach()


ANY = ("wkv", "wkv6", "wkv7")
MEMORIES = ("wkv6", "wkv7")
MEAN = ("wkv",)
PLANTED = {
    "form-equals-oracle": (
        *((fault, MEAN) for fault in (BonusDecays, NoBonus, BonusForEveryChannel, ReadAfterTheUpdate, CurrentTokenTwice)),
        *((fault, MEAN) for fault in (ReadThroughTheDecay, DecaysTwice, DecayIsNotALog, NoRescale, ClampedKeys)),
        *((fault, MEAN) for fault in (StartForgotten, ScaleOfTheStartForgotten)),
        *((both(change), ANY) for change in (zeros, a_little_large, half_precision, last_token_dropped)),
        *((fault, ("wkv6",)) for fault in (MemoryReadsAfter, MemoryReadsTheDecayedState, MemoryWithoutBonus, MemoryBonusDecays)),
        *((fault, ("wkv7",)) for fault in (CorrectionReadsTheDecayedState, CorrectionForgotten, CorrectionSwapped)),
        *((fault, MEMORIES) for fault in (WriteDecaysAtOnce, DecayOfTheFirstChannel, MemoryInHalfPrecision, MemoryStartForgotten)),
        (DecayClamped, MEMORIES),
    ),
    "state-equals-oracle": (
        *((fault, MEAN) for fault in (MaximumForgetsTheDecay, StateOnItsOwnScale, NumeratorForgotten)),
        (both(state_a_little_large), ANY),
        (WriteDecaysAtOnce, MEMORIES),
    ),
    "split-and-resume": ((StartForgotten, MEAN), (NumeratorForgotten, MEAN), (MemoryStartForgotten, MEMORIES)),
    "finite-at-the-edges": ((NoMaximum, MEAN), (ClampedKeys, MEAN), (InfinityTimesZero, MEMORIES)),
    "gradient-of-inputs": (
        (DecayDetached, MEAN),
        (BonusDetached, MEAN),
        (KeyOfTheWeightsOnly, MEAN),
        (MemoryGateDetached, MEMORIES),
        (CorrectionDetached, ("wkv7",)),
    ),
    "gradient-of-initial-state": (
        (StartDetached, MEAN),
        (ScaleOfTheStartDetached, MEAN),
        (MemoryStartDetached, MEMORIES),
        (CorrectionDetached, ("wkv7",)),
    ),
    "gradient-through-final-state": ((LastStateDetached, MEAN), (LastStateLouder, MEAN), (MemoryGateDetached, MEMORIES)),
    "prefix-invariance": ((MaximumOfAllTimes, MEAN),),
    "batch-company": ((NeighboursLeak, MEAN),),
    "group-map": ((HeadsTiled, MEMORIES),),
    "packed-equals-alone": ((PackedStateLeaks, MEMORIES), (StateOfTheFirstSequence, MEMORIES)),
    "padding": ((WriteDecaysAtOnce, ("wkv6",)), (MemoryInHalfPrecision, MEMORIES)),
    "reduction": (
        (MemoryReadsAfter, ("wkv6",)),
        (CorrectionForgotten, ("wkv7",)),
        (DecayOfTheFirstChannel, ("wkv7",)),
    ),
}
KINDS = [
    (law, fault[name] if isinstance(fault, dict) else fault, name)
    for law, found in PLANTED.items()
    for fault, names in found
    for name in names
]
RIGHT = {"wkv": Mean, "wkv6": Memory, "wkv7": Memory}


STEPS = [(StartForgotten, "wkv"), (NumeratorForgotten, "wkv"), (MemoryStartForgotten, "wkv6"), (MemoryStartForgotten, "wkv7")]
