"""Faulty memories with decays: each law must see those of its kind, at both scales; right siblings hold."""

import torch

from ..gated import GATES, Chunks, Loop, Tokens
from ..planting import Backward

RETENTION, GATED, CHANNELS, DELTA = GATES


# which decay, and where ------------------------------------------------------------------------------


class WriteDecaysAtOnce(Loop):
    def update(self, s, x, t):
        return self.fade(s + x.k[t].unsqueeze(-1) * self.write(s, s, x, t).unsqueeze(-2), x, t)


class GateOfTheTokenBefore(Loop):
    def fade(self, s, x, t):
        return super().fade(s, x, max(t - 1, 0))


class GateOfTheNextToken(Loop):
    def fade(self, s, x, t):
        return super().fade(s, x, min(t + 1, len(x) - 1))


class StartNotFaded(Loop):
    def fade(self, s, x, t):
        return s if t == 0 else super().fade(s, x, t)


class ReadsTheOldState(Loop):
    def read(self, new, old, x, t):
        return self.find(x.q[t], old)


class ReadsTheFadedState(Loop):
    def read(self, new, old, x, t):
        return self.find(x.q[t], self.fade(old, x, t))


class CorrectionReadsTheUndecayedState(Loop):
    def write(self, faded, s, x, t):
        return super().write(s, s, x, t)


class DecayOfAnotherHead(Loop):
    def gate_heads(self, x):
        return super().gate_heads(x).roll(1, 2)

    def logs(self, g):
        return g.roll(1, 2) if self.name in (GATED, DELTA) else g


class GatesTiled(Loop):
    def gate_heads(self, x):
        return x.repeat(1, 1, self.call["v"].shape[2] // x.shape[2], *[1] * (x.ndim - 3))


class FirstGateForAll(Loop):
    def logs(self, g):
        return g[:1].expand_as(g)


class GateOfTheFirstChannel(Loop):
    def logs(self, g):
        return g[..., :1].expand_as(g)


class ValueGatesIgnored(Loop):
    def tokens(self):
        x = super().tokens()
        return Tokens(x.q, x.k, x.v, x.gk, 0 * x.v, x.beta)


class GatesSwapped(Loop):
    def tokens(self):
        x = super().tokens()
        return Tokens(x.q, x.k, x.v, x.gv, x.gk, x.beta) if x.gk.shape == x.gv.shape else x


class StrengthTwice(Loop):
    def strength(self, beta, k):
        return beta * beta


class StrengthNotOnTheCorrection(Loop):
    def write(self, faded, s, x, t):
        return x.beta[t] * x.v[t] - self.find(x.k[t], faded)


class GatesAreNotLogs(Loop):
    def decay(self, g):
        return 1 + g


class GatesInBaseTwo(Loop):
    def decay(self, g):
        return g.exp2()


class DefaultDecaysOneTooStrong(Loop):
    def default(self, heads):
        return torch.log1p(-(2.0 ** (-4.0 - torch.arange(heads, dtype=self.dtype))))


class DefaultDecayOfTheFirstHead(Loop):
    def default(self, heads):
        return super().default(1).expand(heads)


# strong gates, and accuracy ---------------------------------------------------------------------------


class InfinityTimesZero(Loop):
    def decay(self, g):
        return g.exp() + 0 * g


class ClampedAtFive(Loop):
    def logs(self, g):
        return g.clamp(min=-5)


class ClampedAtTwenty(Loop):
    def logs(self, g):
        return g.clamp(min=-20)


class GateOfOneLeaks(Loop):
    def logs(self, g):
        return g.clamp(max=-1e-3)


class GatesInHalfPrecision(Loop):
    def logs(self, g):
        return g.bfloat16().to(self.dtype)


class DecaysInHalfPrecision(Loop):
    def decay(self, g):
        return g.exp().bfloat16().to(self.dtype)


class StateInHalfPrecision(Loop):
    def fade(self, s, x, t):
        return super().fade(s.bfloat16().to(self.dtype), x, t)


class DifferencesOfSums(Chunks):
    """The sums from the start of the chunk, taken from each other."""

    def between(self, g):
        sums = torch.cat([g[:1] * 0, g]).clamp(min=-1e30).cumsum(0)
        behind = torch.ones(len(sums), len(sums), dtype=torch.bool).tril().view(len(sums), len(sums), *[1] * (g.ndim - 1))
        return torch.where(behind, sums.unsqueeze(1) - sums.unsqueeze(0), -torch.inf)


class DifferencesAfterStrongGates(DifferencesOfSums):
    """Gates are bounded where nothing is left of what they fade: only the digits of later ones are lost."""

    def logs(self, g):
        return g.clamp(min=-100)


class DifferencesOfInfinities(DifferencesOfSums):
    def between(self, g):
        sums = torch.cat([g[:1] * 0, g]).cumsum(0)
        behind = torch.ones(len(sums), len(sums), dtype=torch.bool).tril().view(len(sums), len(sums), *[1] * (g.ndim - 1))
        return torch.where(behind, sums.unsqueeze(1) - sums.unsqueeze(0), -torch.inf)


class FactoredDecay(DifferencesOfSums):
    """exp(G_i) exp(-G_j): overflows."""

    def decays(self, g):
        sums = torch.cat([g[:1] * 0, g]).cumsum(0)
        behind = torch.ones(len(sums), len(sums), dtype=torch.bool).tril().view(len(sums), len(sums), *[1] * (g.ndim - 1))
        return torch.where(behind, sums.exp().unsqueeze(1) * (-sums).exp().unsqueeze(0), 0)


class PowersOfAnExponent(Loop):
    """γ^n as exp(n g), which is NaN at γ = 0 and n = 0."""

    def fade(self, s, x, t):
        return super().fade(s, x, t) * (0 * x.gk[t]).exp().unsqueeze(-1)


# chunks ---------------------------------------------------------------------------------------------


class ChunkEntersUndecayed(Chunks):
    """The state of the chunks before is faded by one token too few."""

    def decays(self, g):
        found = super().decays(g)
        early = torch.cat([found[:1, 0], found[:-1, 0]])
        return torch.cat([early.unsqueeze(1), found[:, 1:]], 1)


class ChunkEntersDecayedTwice(Chunks):
    def carry(self, s):
        return s * 0.998


class OwnGateInsideAChunk(Chunks):
    """Token j's own gate on what it writes."""

    def decays(self, g):
        found = super().decays(g)
        return torch.cat([found[:, :1], found[:, 1:] * self.decay(g).unsqueeze(0)], 1)


class StateOfAChunkUndecayed(Chunks):
    """What is handed on has not been faded by the last gate of the chunk."""

    def decays(self, g):
        found = super().decays(g)
        return torch.cat([found[:-1], found[-2:-1] + (found[-1:] - found[-2:-1]) * (found[-2:-1] == 0)]) if len(g) > 1 else found


class ResetLostEvery64(Loop):
    """A gate of -∞ at the first token of a chunk of 64, but for the first chunk, counts as 0."""

    def fade(self, s, x, t):
        gk = torch.where(torch.isinf(x.gk[t]), 0, x.gk[t]) if t % 64 == 0 and t else x.gk[t]
        return self.decay(gk).unsqueeze(-1) * s * self.decay(x.gv[t]).unsqueeze(-2)


class RaggedTailDecayedOnceMore(Chunks):
    def last(self, s, x, t):
        size = self.call.get("chunk_size") or 64
        return s if t % size == 0 or len(x) == 0 else self.fade(s, x, t - 1)


class CarryInHalfPrecision(Chunks):
    def carry(self, s):
        return s.bfloat16().to(s.dtype)


# states ---------------------------------------------------------------------------------------------


class FinalStateWithoutItsLastDecay(Loop):
    def sequence(self, x, s):
        out, last = super().sequence(x, s)
        if len(x) == 0:
            return out, last
        before = super().sequence(x.part(0, len(x) - 1), s)[1]
        return out, last - self.fade(before, x, len(x) - 1) + before


class FinalStateDecayedOnceMore(Loop):
    def last(self, s, x, t):
        return self.fade(s, x, t - 1) if t else s


class FinalStateOfNoNumbersIsZero(Loop):
    def last(self, s, x, t):
        return torch.nan_to_num(s)


class EmptySequenceFades(Loop):
    def last(self, s, x, t):
        return s if t else s * 0.5


# gradients ------------------------------------------------------------------------------------------


class GateDetached(Loop):
    def logs(self, g):
        return g.detach()


class GateOfTheWrongSign(Loop):
    def logs(self, g):
        return Backward.apply(g, -1)


class GateGradientALittleLarge(Loop):
    def logs(self, g):
        return Backward.apply(g, 1.004)


class GateGradientByTheDecay(Loop):
    """The derivative by e^g in the place of that by g."""

    def decay(self, g):
        return Backward.apply(g.exp() + (g - g.detach()).nan_to_num(), 1) - (g - g.detach()).nan_to_num() * (g.detach().exp() == 0)


class GateOfTheCarryDetached(Chunks):
    """No gradient of a gate by what was written in the chunks before."""

    def decays(self, g):
        found = super().decays(g)
        return torch.cat([found[:, :1].detach(), found[:, 1:]], 1)


class NoGradientWhereItIsGone(Loop):
    """Right values; the derivative by a gate of 0 or -∞ is NaN."""

    def decay(self, g):
        return (-((-g).log().exp())).exp()


class StrengthDetached(Loop):
    def strength(self, beta, k):
        return beta.detach()


class ShortGradientHalfAgain(Loop):
    """In 16 bits alone, where a bound is a few per cent of all terms."""

    def wide(self, x):
        return Backward.apply(x, 1.5).to(self.dtype) if x.dtype == torch.bfloat16 else x.to(self.dtype)


class FinalStateForgetsTheGate(Loop):
    def sequence(self, x, s):
        out, _ = super().sequence(x, s)
        fixed = Tokens(x.q, x.k, x.v, x.gk.detach(), x.gv.detach(), x.beta)
        return out, super().sequence(fixed, s)[1]


# packing, batch, dtypes -----------------------------------------------------------------------------


class SumsRunAcrossSegments(Loop):
    def enter(self, s, x, a):
        return s if a == 0 else self.fade(s, x, a - 1)


class GatesOfTheFirstSequence(Loop):
    def logs(self, g):
        return g[:, :, :] if g.shape[0] == 1 else g[:1].expand_as(g)


class WideOutput(Loop):
    def result(self, out, state):
        return out.to(self.dtype), state


class ShortState(Loop):
    def result(self, out, state):
        out, state = super().result(out, state)
        return out, state.to(out.dtype)


# outside, special cases, norms, padding -------------------------------------------------------------


class GrowthClamped(Loop):
    def logs(self, g):
        return g.clamp(max=0)


class StrengthClamped(Loop):
    def strength(self, beta, k):
        size = k.square().sum(-1, keepdim=True)
        return torch.minimum(beta.clamp(min=0), 2 / size)


class NegativeStrengthClamped(Loop):
    def strength(self, beta, k):
        return beta.clamp(min=0)


class NormIgnored(Loop):
    def norm(self, x):
        return x


class NormEpsOutsideTheRoot(Loop):
    def norm(self, x):
        return x / (x.norm(dim=-1, keepdim=True) + 1e-6) if self.call.get("use_qk_l2norm_in_kernel") else x


class NormEpsLarger(Loop):
    def norm(self, x):
        return x / (x.square().sum(-1, keepdim=True) + 1e-5).sqrt() if self.call.get("use_qk_l2norm_in_kernel") else x


class PaddingFades(Loop):
    """A token without a key takes something with it."""

    def fade(self, s, x, t):
        empty = (x.k[t] == 0).all(-1, keepdim=True) | (x.v[t] == 0).all(-1, keepdim=True)
        return super().fade(s, x, t) * torch.where(empty, 0.99, 1.0).unsqueeze(-1)


class PaddingReadsItsValue(Loop):
    """What padding contains is seen by the next token."""

    def update(self, s, x, t):
        return super().update(s, x, t) + 1e-3 * x.v[t].unsqueeze(-2)


ALL = tuple(GATES)
PLANTED = {
    "form-equals-oracle": (
        (WriteDecaysAtOnce, ALL),
        (GateOfTheTokenBefore, (GATED, CHANNELS, DELTA)),
        (GateOfTheNextToken, (GATED, CHANNELS, DELTA)),
        (StartNotFaded, ALL),
        (ReadsTheOldState, ALL),
        (ReadsTheFadedState, ALL),
        (CorrectionReadsTheUndecayedState, (DELTA,)),
        (DecayOfAnotherHead, ALL),
        (FirstGateForAll, (GATED,)),
        (GateOfTheFirstChannel, (CHANNELS,)),
        (ValueGatesIgnored, (CHANNELS,)),
        (GatesSwapped, (CHANNELS,)),
        (StrengthTwice, (DELTA,)),
        (StrengthNotOnTheCorrection, (DELTA,)),
        (GatesAreNotLogs, (RETENTION, GATED)),
        (GatesInBaseTwo, ALL),
        (DefaultDecaysOneTooStrong, (RETENTION,)),
        (DefaultDecayOfTheFirstHead, (RETENTION,)),
        (GatesInHalfPrecision, ALL),
        (DecaysInHalfPrecision, ALL),
        (StateInHalfPrecision, ALL),
        (ResetLostEvery64, ALL),
        (InfinityTimesZero, ALL),
        (ClampedAtFive, ALL),
        (ClampedAtTwenty, (RETENTION, GATED, DELTA)),
        (GateOfOneLeaks, ALL),
        (DifferencesOfSums, (GATED, CHANNELS, DELTA)),
        (DifferencesAfterStrongGates, (GATED, CHANNELS, DELTA)),
        (DifferencesOfInfinities, ALL),
        (FactoredDecay, ALL),
        (PowersOfAnExponent, (RETENTION,)),
        (NormIgnored, (DELTA,)),
        (NormEpsOutsideTheRoot, (DELTA,)),
        (NormEpsLarger, (DELTA,)),
    ),
    "chunk-size": (
        (ChunkEntersUndecayed, (GATED, CHANNELS, DELTA)),
        (ChunkEntersDecayedTwice, (RETENTION, GATED)),
        (OwnGateInsideAChunk, (RETENTION, CHANNELS, DELTA)),
        (CarryInHalfPrecision, (RETENTION, DELTA)),
        (StateOfAChunkUndecayed, (RETENTION, GATED)),
    ),
    "finite-at-the-edges": ((InfinityTimesZero, (GATED,)), (FactoredDecay, (GATED, DELTA)), (DifferencesOfSums, (GATED, CHANNELS))),
    "exact-bits": ((GateOfOneLeaks, ALL), (ClampedAtTwenty, ALL), (InfinityTimesZero, (CHANNELS,))),
    "long-sequence": ((StateInHalfPrecision, ALL), (DecaysInHalfPrecision, ALL), (GateOfOneLeaks, ALL)),
    "state-equals-oracle": (
        (FinalStateWithoutItsLastDecay, ALL),
        (FinalStateDecayedOnceMore, ALL),
        (RaggedTailDecayedOnceMore, ALL),
        (EmptySequenceFades, (RETENTION, DELTA)),
    ),
    "split-and-resume": ((FinalStateWithoutItsLastDecay, (GATED,)), (StartNotFaded, ALL)),
    "prefix-invariance": ((FinalStateOfNoNumbersIsZero, ALL), (GateOfTheNextToken, (GATED, CHANNELS))),
    "gradient-of-inputs": (
        (GateDetached, ALL),
        (GateOfTheWrongSign, ALL),
        (GateGradientALittleLarge, ALL),
        (GateOfTheCarryDetached, (GATED, CHANNELS, DELTA)),
        (NoGradientWhereItIsGone, (GATED, CHANNELS)),
        (StrengthDetached, (DELTA,)),
        (ShortGradientHalfAgain, (GATED,)),
    ),
    "gradient-through-final-state": ((FinalStateForgetsTheGate, ALL), (GateOfTheWrongSign, (GATED,))),
    "gradient-of-packed": ((GateOfTheWrongSign, (GATED, DELTA)),),
    "group-map": ((GatesTiled, (RETENTION, CHANNELS)), (DecayOfAnotherHead, ALL)),
    "batch-company": ((GatesOfTheFirstSequence, (GATED, CHANNELS, DELTA)),),
    "packed-equals-alone": ((SumsRunAcrossSegments, ALL),),
    "result-dtypes": ((WideOutput, ALL), (ShortState, (GATED, DELTA))),
    "outside-the-domain": ((GrowthClamped, ALL), (StrengthClamped, (DELTA,)), (NegativeStrengthClamped, (DELTA,))),
    "reduction": (
        (GateOfOneLeaks, ALL),
        (InfinityTimesZero, (GATED,)),
        (StartNotFaded, ALL),
        (CorrectionReadsTheUndecayedState, (DELTA,)),
        (GatesTiled, (CHANNELS,)),
    ),
    "padding": ((PaddingFades, (GATED, CHANNELS, DELTA)), (PaddingReadsItsValue, (GATED, DELTA)), (GateOfOneLeaks, (GATED, DELTA))),
}
STEPS = (
    (WriteDecaysAtOnce, ALL),
    (StartNotFaded, ALL),
    (CorrectionReadsTheUndecayedState, (DELTA,)),
    (DefaultDecaysOneTooStrong, (RETENTION,)),
    (ValueGatesIgnored, (CHANNELS,)),
)
