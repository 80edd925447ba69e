"""The catalogue of planted faults: kernels that are wrong in one way, by the kinds of fault that sequence-layer code has.

A kind is one of `KINDS` of the laws, which name by it what they are there for. K18, a wrong symbolic engine, is no fault of a
kernel: it is planted as wrong edits of the engine (``edits/``). Every kernel has the plain call of its operator, and is an attribute of
this module under its name.
"""

from dataclasses import dataclass

from isoform.impl import attention as whole
from isoform.impl import delta_rule, linear_attention, mamba, state_space
from isoform.impl.mamba import convolution

from . import gated, recurring
from .faults import attention, composing, gates, memories, rwkv, scans, sight, systems

LINEAR, DELTA = "linear-attention", "delta-rule"
RETENTION, GATED, CHANNELS, GATED_DELTA = gated.GATES
GATES = tuple(gated.GATES)
ATTENTION, SELECTIVE, SYSTEM, WKV, CONVOLUTION = "attention", "selective-scan", "lti", "wkv", "causal-conv1d"
OPERATORS = (LINEAR, *GATES[:3], DELTA, GATED_DELTA, ATTENTION, SELECTIVE, SYSTEM, WKV, CONVOLUTION)
BASES = {
    LINEAR: linear_attention.chunkwise,
    DELTA: delta_rule.chunkwise,
    ATTENTION: whole.masked,
    SELECTIVE: mamba.scan,
    SYSTEM: state_space.convolution,
    CONVOLUTION: convolution.convolution,
}
"""What faults are planted in that are no loops of their own."""


def ragged_tail_skipped(base):
    return sight.online("ragged tail skipped")


def output_not_rescaled(base):
    return sight.online("output not rescaled")


ROWS = (
    ("K1", memories.start_ignored, LINEAR, DELTA),
    ("K1", memories.short_chunks_ignore_the_start, LINEAR),
    ("K1", gates.StartNotFaded, *GATES),
    ("K1", scans.start_ignored, SELECTIVE, CONVOLUTION),
    ("K1", systems.start_ignored, SYSTEM),
    ("K1", rwkv.StartForgotten, WKV),
    ("K1", rwkv.NumeratorForgotten, WKV),
    ("K2", memories.state_a_token_early, LINEAR, DELTA),
    ("K2", memories.empty_forgets_the_start, DELTA),
    ("K2 K15", memories.state_transposed, LINEAR),
    ("K2", gates.FinalStateWithoutItsLastDecay, *GATES),
    ("K2 K3", gates.RaggedTailDecayedOnceMore, GATED),
    ("K2", scans.state_a_step_early, SELECTIVE),
    ("K2", scans.tail_reversed, CONVOLUTION),
    ("K2 K3", scans.short_tail_of_zeros, CONVOLUTION),
    ("K2", systems.state_without_the_free_response, SYSTEM),
    ("K2", rwkv.MaximumForgetsTheDecay, WKV),
    ("K3", memories.tail_without_carry, LINEAR, DELTA),
    ("K3", memories.last_of_a_chunk_lost, LINEAR),
    ("K3", memories.chunks_of_one_crash, DELTA),
    ("K3", memories.one_token_squeezed, LINEAR),
    ("K3", ragged_tail_skipped, ATTENTION),
    ("K3", scans.last_chunk_dropped, SELECTIVE),
    ("K3", scans.one_output_squeezed, CONVOLUTION),
    ("K3", systems.one_output_squeezed, SYSTEM),
    ("K4", gates.InfinityTimesZero, *GATES),
    ("K4", gates.ClampedAtFive, RETENTION, GATED_DELTA),
    ("K4", gates.FactoredDecay, GATED, CHANNELS),
    ("K4", gates.DifferencesOfInfinities, GATED_DELTA),
    ("K4", gates.ResetLostEvery64, GATED),
    ("K4", gates.GateOfOneLeaks, RETENTION, CHANNELS),
    ("K4", gates.GrowthClamped, GATED),
    ("K4", gates.StrengthClamped, GATED_DELTA),
    ("K4", scans.decays_by_quotients, SELECTIVE),
    ("K4", scans.decays_by_differences, SELECTIVE),
    ("K4", scans.softplus_by_its_letters, SELECTIVE),
    ("K4", rwkv.NoMaximum, WKV),
    ("K4", rwkv.ClampedKeys, WKV),
    ("K4", attention.no_shift_before_exp, ATTENTION),
    ("K5", memories.carry_detached, LINEAR, DELTA),
    ("K5", memories.gradient_a_little_large, DELTA),
    ("K5", memories.final_state_detached, LINEAR),
    ("K5", memories.start_detached, DELTA),
    ("K5 K7", memories.packed_gradient_a_little_large, LINEAR),
    ("K5", gates.GateDetached, RETENTION, GATED),
    ("K5 K4", gates.NoGradientWhereItIsGone, GATED),
    ("K5", gates.GateOfTheCarryDetached, CHANNELS, GATED_DELTA),
    ("K5", scans.poles_detached, SELECTIVE),
    ("K5", scans.start_detached, CONVOLUTION),
    ("K5", systems.transition_detached, SYSTEM),
    ("K5", attention.keys_detached, ATTENTION),
    ("K5", rwkv.DecayDetached, WKV),
    ("K6", gates.PaddingFades, GATED, CHANNELS, GATED_DELTA),
    ("K6", scans.steps_floored, SELECTIVE),
    ("K6 K3", scans.padded_before_the_softplus, SELECTIVE),
    ("K6", sight.mask_hides_values_alone, ATTENTION),
    ("K6", sight.mask_is_a_penalty, ATTENTION),
    ("K7", memories.offsets_ignored, LINEAR, DELTA),
    ("K7", memories.offsets_off_by_one, LINEAR),
    ("K7", memories.one_state_for_all, DELTA),
    ("K7", memories.empty_after_empty_lost, LINEAR),
    ("K7", gates.SumsRunAcrossSegments, *GATES),
    ("K8", memories.sees_the_next_token, LINEAR, DELTA),
    ("K8", gates.GateOfTheNextToken, GATED),
    ("K8", attention.top_left_frontier, ATTENTION),
    ("K8", attention.sees_the_next_key, ATTENTION),
    ("K8", scans.sees_the_next_token, CONVOLUTION),
    ("K8", scans.nan_spreads_backwards, SELECTIVE),
    ("K8", rwkv.MaximumOfAllTimes, WKV),
    ("K9", attention.empty_rows_are_means, ATTENTION),
    ("K9", attention.empty_rows_are_nan, ATTENTION),
    ("K9", sight.zero_times_nan, ATTENTION),
    ("K9 K5", sight.softmax_of_nothing, ATTENTION),
    ("K10", sight.window_a_key_wider, ATTENTION),
    ("K10", sight.window_a_key_narrower, ATTENTION),
    ("K10", sight.window_from_the_first_key, ATTENTION),
    ("K11", memories.values_overwritten, LINEAR),
    ("K11", memories.start_updated_in_place, DELTA),
    ("K11", memories.output_in_queries, LINEAR),
    ("K11", memories.remembers, LINEAR),
    ("K11", attention.queries_scaled_in_place, ATTENTION),
    ("K11", scans.inputs_scaled_in_place, CONVOLUTION),
    ("K11", systems.start_updated_in_place, SYSTEM),
    ("K12", memories.carry_in_half_precision, LINEAR, DELTA),
    ("K12", gates.StateInHalfPrecision, *GATES),
    ("K12", gates.DecaysInHalfPrecision, RETENTION),
    ("K12", scans.half_precision, SELECTIVE),
    ("K12", sight.sums_in_the_dtype, ATTENTION),
    ("K13", memories.strides_of_values_misread, LINEAR),
    ("K13", memories.heads_tiled, DELTA),
    ("K13", gates.GatesTiled, RETENTION, CHANNELS),
    ("K13", attention.contiguous_was_assumed, ATTENTION),
    ("K13", attention.heads_tiled, ATTENTION),
    ("K13", scans.groups_in_turn, SELECTIVE),
    ("K13", scans.strides_misread, CONVOLUTION),
    ("K13", systems.transition_misread, SYSTEM),
    ("K14", memories.neighbours_leak, LINEAR),
    ("K14", memories.scaled_by_the_batch, DELTA),
    ("K14", gates.GatesOfTheFirstSequence, GATED, GATED_DELTA),
    ("K14", attention.neighbours_poison, ATTENTION),
    ("K14", scans.neighbours_leak, CONVOLUTION),
    ("K14", systems.neighbours_poison, SYSTEM),
    ("K14", rwkv.NeighboursLeak, WKV),
    ("K15", memories.scale_forgotten, LINEAR),
    ("K15", gates.GatesInBaseTwo, GATED),
    ("K15", gates.ReadsTheOldState, *GATES),
    ("K15", gates.CorrectionReadsTheUndecayedState, GATED_DELTA),
    ("K15", gates.GatesSwapped, CHANNELS),
    ("K15", gates.DefaultDecaysOneTooStrong, RETENTION),
    ("K15", gates.NormEpsOutsideTheRoot, GATED_DELTA),
    ("K15", scans.read_before_the_update, SELECTIVE),
    ("K15", scans.gate_without_its_argument, SELECTIVE),
    ("K15", systems.read_before_the_update, SYSTEM),
    ("K15", systems.transition_transposed, SYSTEM),
    ("K15", rwkv.ReadAfterTheUpdate, WKV),
    ("K15", rwkv.BonusDecays, WKV),
    ("K16", scans.other_discretization, SELECTIVE),
    ("K16", scans.forward_euler_decay, SELECTIVE),
    ("K16", scans.step_of_the_write_forgotten, SELECTIVE),
    ("K17", scans.taps_reversed, CONVOLUTION),
    ("K17", scans.one_input_late, CONVOLUTION),
    ("K17", scans.padded_behind, CONVOLUTION),
    ("K17 K8", systems.circular, SYSTEM),
    ("K17", composing.earlier_map_on_the_left, DELTA),
    ("K17 K3", composing.span_that_starts_a_token_late, DELTA),
    ("K17", output_not_rescaled, ATTENTION),
    ("K19", memories.zeros, LINEAR, DELTA),
    ("K19", memories.mean, LINEAR),
    ("K19", memories.last_token_dropped, DELTA),
    ("K19", memories.carry_dropped, LINEAR, DELTA),
    ("K19 K15", memories.swapped, LINEAR, DELTA),
    ("K19 K12", memories.half_precision, LINEAR, DELTA),
    ("K19", memories.a_little_large, LINEAR, DELTA),
    ("K19", attention.mean_of_values, ATTENTION),
    ("K19 K12", attention.half_precision, ATTENTION),
    ("K19", scans.last_token_dropped, SELECTIVE),
    ("K19", scans.a_little_large, CONVOLUTION),
    ("K19", systems.zeros, SYSTEM),
    ("K19", rwkv.both(rwkv.a_little_large)[WKV], WKV),
)


@dataclass(frozen=True)
class Planted:
    """A wrong kernel: its name, the kinds of its fault, the operator that it claims to be, and the plain call."""

    name: str
    kinds: tuple[str, ...]
    operator: str
    kernel: object


def _kernel(fault, operator):
    if isinstance(fault, type):
        return (recurring if operator == WKV else gated).form(fault, operator)
    return fault(BASES[operator])


CATALOGUE = tuple(
    Planted(f"{fault.__name__}__{operator.replace('-', '_')}", tuple(kinds.split()), operator, _kernel(fault, operator))
    for kinds, fault, *operators in ROWS
    for operator in operators
)
globals().update({planted.name: planted.kernel for planted in CATALOGUE})
