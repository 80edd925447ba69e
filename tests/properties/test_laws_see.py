"""Each of these laws sees the fault that it is there for, at both scales, and a right form holds under it."""

from functools import wraps

import pytest
import torch

from isoform.impl import (
    attention,
    delta_rule,
    gated_delta_rule,
    gated_linear_attention,
    gated_retention,
    linear_attention,
    mamba,
    retention,
    rwkv,
    s4,
    state_space,
)
from isoform.properties.columns import operator
from isoform.properties.laws import laws
from isoform.properties.laws.table import KINDS
from isoform.properties.operator import Form
from isoform.properties.running import run_law

LAWS = {law.name: law for law in laws()}
RIGHT = {
    "linear-attention": linear_attention.chunkwise,
    "retention": retention.recurrent,
    "gated-retention": gated_retention.chunkwise,
    "gated-linear-attention": gated_linear_attention.recurrent,
    "delta-rule": delta_rule.chunkwise,
    "gated-delta-rule": gated_delta_rule.recurrent,
    "wkv": rwkv.FORMS["wkv"][0],
    "selective-scan": mamba.FORMS["selective-scan"][0],
    "causal-conv1d": mamba.FORMS["causal-conv1d"][0],
    "lti": state_space.convolution,
    "s4d": s4.FORMS["s4d"][0],
    "attention": attention.FORMS["attention"][0],
}
SCALES = pytest.mark.parametrize("scale", ["small", "large"])


def result_of(law, name, function, scale, **more):
    given = {"examples": 10, "corners": 12, "scales": (scale,), "minimise": False} | more
    return run_law(LAWS[law], operator(name), Form(function.__name__, function), **given)


def like(name):
    """A wrong form by what it makes of the right one and a call's arguments; its signature is the right one's."""

    def decorate(wrong):
        right = RIGHT[name]

        @wraps(right)
        def form(*args, **given):
            return wrong(right, *args, **given)

        form.__name__ = wrong.__name__
        return form

    return decorate


def length(given):
    return given["q"].shape[1] if "q" in given else given["u"].shape[-1]


# every length -------------------------------------------------------------------------------------------------


def last_token_of_a_tile_and_one(right, **given):
    o, s = right(**given)
    return (o.index_fill(1, torch.tensor([o.shape[1] - 1]), 0.0) if o.shape[1] == 2 * given["chunk_size"] + 1 else o), s


def state_of_the_last_whole_chunk(right, chunk_size=64, **given):
    """The state leaves out a tail of one token."""
    steps, extra = length(given), 1 if length(given) > chunk_size and length(given) % chunk_size == 1 else 0
    o, s = right(chunk_size=chunk_size, **given)
    if extra and s is not None:
        cut = {n: x[:, : steps - 1] if n in ("q", "k", "v", "g", "beta") else x for n, x in given.items()}
        _, s = right(chunk_size=chunk_size, **cut)
    return o, s


def no_state_after_no_token(right, **given):
    o, s = right(**given)
    return o, (None if o.shape[1] == 0 else s)


@SCALES
@pytest.mark.parametrize("name", ["linear-attention", "gated-retention", "delta-rule"])
@pytest.mark.parametrize(
    "wrong", [last_token_of_a_tile_and_one, state_of_the_last_whole_chunk, no_state_after_no_token], ids=lambda f: f.__name__
)
def test_one_wrong_length_is_seen(wrong, name, scale):
    assert result_of("every-length", name, like(name)(wrong), scale).verdict == "violated"


@pytest.mark.parametrize("bad", [17, 64])
def test_a_length_off_the_tiles_of_a_kernel_with_its_own_chunks_is_seen(bad):
    right = RIGHT["gated-delta-rule"]

    @wraps(right)
    def form(q, k, v, g, beta, **given):
        o, s = right(q, k, v, g, beta, **given)
        return (o * 0 if q.shape[1] == bad else o), s

    assert result_of("every-length", "gated-delta-rule", form, "large", corners=6).verdict == "violated"


def test_every_length_is_tried():
    seen = set()

    def counts(right, **given):
        seen.add((length(given), given["chunk_size"]))
        return right(**given)

    result = result_of("every-length", "linear-attention", like("linear-attention")(counts), "small")
    assert result.verdict == "holds"
    for chunk in (4, 16, 64):
        assert {(n, chunk) for n in range(2 * chunk + 3)} <= seen


# the state --------------------------------------------------------------------------------------------------------


STATEFUL = ["linear-attention", "retention", "gated-linear-attention", "delta-rule", "wkv", "selective-scan", "causal-conv1d", "lti", "s4d"]
MEMORIES = STATEFUL[:4]


def ignores_the_state(right, **given):
    return right(**{n: x for n, x in given.items() if not n.startswith("initial_state")})


def half_of_the_state(right, **given):
    return right(**{n: x / 2 if n.startswith("initial_state") and x is not None else x for n, x in given.items()})


def state_turned(right, **given):
    """Right where K = V."""
    s = given.get("initial_state")
    if s is None:
        return right(**given)
    given["initial_state"] = s.transpose(-1, -2).reshape(s.shape)
    return right(**given)


@SCALES
@pytest.mark.parametrize("name", STATEFUL)
@pytest.mark.parametrize("wrong", [ignores_the_state, half_of_the_state], ids=lambda f: f.__name__)
def test_a_state_that_is_not_heard_is_seen(wrong, name, scale):
    if (wrong, name) == (half_of_the_state, "wkv"):
        pytest.skip("half of a numerator, of a denominator and of a maximum is another matter")
    assert result_of("state-alone", name, like(name)(wrong), scale).verdict == "violated"


@SCALES
@pytest.mark.parametrize("name", MEMORIES)
def test_a_state_that_is_turned_is_seen(name, scale):
    assert result_of("state-alone", name, like(name)(state_turned), scale).verdict == "violated"


def by_position(right, **given):
    """A factor that grows with the number of the token."""
    name = next(n for n in ("v", "u", "x") if n in given)
    axis = 1 if name == "v" else -1
    steps = torch.arange(given[name].shape[axis]).to(given[name].dtype)
    factor = (1 + steps / 32).reshape([-1 if n == axis % given[name].ndim else 1 for n in range(given[name].ndim)])
    return right(**{**given, name: given[name] * factor.to(given[name].dtype)})


@SCALES
@pytest.mark.parametrize("name", [n for n in STATEFUL if n != "wkv"])
def test_what_depends_on_the_position_is_seen(name, scale):
    assert result_of("shift-invariance", name, like(name)(by_position), scale).verdict == "violated"


# calls ------------------------------------------------------------------------------------------------------------


def with_one_buffer(name):
    """Results live in memory that the next call of the same shape uses again."""
    kept = {}

    def form(right, **given):
        o, s = right(**given)
        at = kept.setdefault((o.shape, o.dtype), torch.empty_like(o))
        at.copy_(o.detach())
        return (at if not o.requires_grad else o), s

    return like(name)(form)


def with_a_cache_by_shape(name):
    """The products of the first call of a shape are taken for those of every call."""
    kept = {}

    def form(right, **given):
        key = tuple((n, x.shape, x.dtype) if isinstance(x, torch.Tensor) else (n, x) for n, x in given.items())
        kept.setdefault(key, given["k"].clone())
        return right(**{**given, "k": kept[key]})

    return like(name)(form)


def with_a_counter(name):
    """Random numbers that are drawn from one stream: every call has others."""
    generator = torch.Generator().manual_seed(0)

    def form(right, **given):
        o, s = right(**given)
        return o * (1 + torch.rand((), generator=generator).to(o.dtype)), s

    return like(name)(form)


@SCALES
@pytest.mark.parametrize("name", ["linear-attention", "delta-rule"])
@pytest.mark.parametrize("wrong", [with_one_buffer, with_a_counter, with_a_cache_by_shape], ids=lambda f: f.__name__)
def test_what_is_kept_from_call_to_call_is_seen(wrong, name, scale):
    assert result_of("calls-apart", name, wrong(name), scale).verdict == "violated"


def writes_to_the_state(right, **given):
    o, s = right(**given)
    if given.get("initial_state") is not None and s is not None:
        given["initial_state"].copy_(s)
    return o, s


def with_one_state(name):
    """The state that is handed out is one buffer, which the next call writes to."""
    kept = {}

    def form(right, **given):
        o, s = right(**given)
        if s is None:
            return o, s
        return o, kept.setdefault((s.shape, s.dtype), s.clone()).copy_(s)

    return like(name)(form)


@SCALES
@pytest.mark.parametrize("name", MEMORIES)
def test_continuations_that_disturb_each_other_are_seen(name, scale):
    assert result_of("two-continuations", name, like(name)(writes_to_the_state), scale).verdict == "violated"
    assert result_of("two-continuations", name, with_one_state(name), scale).verdict == "violated"


# the batch --------------------------------------------------------------------------------------------------------


def batch_of_five(right, **given):
    """A tile of four members: the fifth gets the first one's output."""
    o, s = right(**given)
    return (torch.cat([o[:4], o[:1]]) if len(o) == 5 else o), s


@SCALES
@pytest.mark.parametrize("name", ["linear-attention", "delta-rule"])
def test_a_batch_of_five_is_seen(name, scale):
    assert result_of("batch-company", name, like(name)(batch_of_five), scale, examples=60).verdict == "violated"


def test_batches_of_one_to_eight_are_tried():
    seen = set()

    def counts(right, **given):
        seen.add(len(given["q"]))
        return right(**given)

    assert result_of("batch-company", "linear-attention", like("linear-attention")(counts), "small", examples=60).verdict == "holds"
    assert seen == set(range(1, 9))


# gradients --------------------------------------------------------------------------------------------------------


class Forgets(torch.autograd.Function):
    """Output and state as they are; the gradient of the state is lost where there is one of the output."""

    @staticmethod
    def forward(ctx, o, s):
        return o.clone(), s.clone()

    @staticmethod
    def backward(ctx, by_o, by_s):
        return by_o, by_s * (0 if by_o.any() else 1)


@SCALES
@pytest.mark.parametrize("name", ["linear-attention", "delta-rule"])
def test_a_gradient_that_is_wrong_only_of_both_is_seen(name, scale):
    def form(right, **given):
        o, s = right(**given)
        return Forgets.apply(o, s) if s is not None else (o, s)

    wrong = like(name)(form)
    few = {"corners": 2, "examples": 4}
    assert result_of("gradient-through-final-state", name, wrong, scale, **few).verdict == "violated"
    assert result_of("gradient-of-inputs", name, wrong, scale, **few).verdict == "holds"


# inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gate"),
    [("gated-retention", "g"), ("gated-linear-attention", "gk"), ("gated-delta-rule", "g"), ("retention", "g_gamma")],
)
@pytest.mark.parametrize("law", ["state-alone", "state-equals-oracle"])
def test_gates_that_are_rounded_to_16_bits_are_seen(law, name, gate):
    def form(right, **given):
        if given.get(gate) is not None:
            given[gate] = given[gate].to(given["v"].dtype)
        return right(**given)

    more = {"dtypes": ("bfloat16",), "examples": 20, "corners": None}
    assert result_of(law, name, like(name)(form), "small", **more).verdict == "violated"
    assert result_of(law, name, RIGHT[name], "small", **more).verdict == "holds"


def test_weights_of_other_groups_are_drawn():
    def form(right, **given):
        """C belongs to the groups that B has."""
        b, c = given["B"], given["C"]
        if b.ndim == c.ndim == 4 and b.shape[1] < c.shape[1]:
            given["C"] = c[:, :: c.shape[1] // b.shape[1]]
        return right(**given)

    wrong = like("selective-scan")(form)
    assert result_of("form-equals-oracle", "selective-scan", wrong, "small", examples=20, corners=None).verdict == "violated"


def test_a_step_that_is_left_out_is_1():
    def form(right, **given):
        delta = given.get("delta")
        return right(**{**given, "delta": given["u"].new_full((given["u"].shape[1],), 0.5) if delta is None else delta})

    assert result_of("form-equals-oracle", "s4d", like("s4d")(form), "small", examples=20, corners=None).verdict == "violated"


class Short16:
    """Loops whose state is rounded to 16 bits after every token, and is handed out by nobody."""

    @staticmethod
    def selective_scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        h = u.new_zeros(*u.shape[:2], A.shape[1])
        out = []
        for t in range(u.shape[2]):
            one, rest = slice(t, t + 1), {"D": D, "delta_bias": delta_bias, "delta_softplus": delta_softplus, "return_last_state": True}
            B_t, C_t = (x if x.ndim == 2 else x[..., one] for x in (B, C))
            z_t = None if z is None else z[..., one]
            y, h = mamba.selective.recurrent(
                u[..., one], delta[..., one], A, B_t, C_t, z=z_t, **rest, initial_state=h, return_last_state=True
            )
            h = h.to(torch.bfloat16).to(h.dtype)
            out.append(y)
        return torch.cat(out, -1) if out else u * 0

    @staticmethod
    def lti(u, Abar, Bbar, C, D=None):
        x, out = None, []
        for t in range(u.shape[1]):
            y, x = state_space.recurrent(u[:, t : t + 1], Abar, Bbar, C, D, initial_state=x, output_final_state=True)
            short = torch.view_as_real(x).to(torch.bfloat16) if x.is_complex() else x.to(torch.bfloat16)
            x = torch.view_as_complex(short.to(torch.float32)) if x.is_complex() else short.to(x.dtype)
            out.append(y)
        return torch.cat(out, 1) if out else state_space.recurrent(u, Abar, Bbar, C, D)


@pytest.mark.parametrize(
    ("law", "name", "function"),
    [("long-sequence", "selective-scan", Short16.selective_scan), ("form-equals-oracle", "lti", Short16.lti)],
    ids=["scan", "lti"],
)
def test_outputs_tell_of_a_state_of_16_bits(law, name, function):
    more = {"dtypes": ("bfloat16",), "examples": 3, "corners": None}
    assert result_of(law, name, function, "small", **more).verdict == "violated"


# one token --------------------------------------------------------------------------------------------------------


def tiled_heads(right, **given):
    """Value head i reads query head i mod H."""
    q, v = given["q"], given["v"]
    if q.shape[2] < v.shape[2]:
        given |= {n: given[n].repeat(1, 1, v.shape[2] // q.shape[2], 1) for n in "qk"}
    return right(**given)


def reads_before_the_write(right, **given):
    o, s = right(**given)
    if given["q"].shape[1] != 1 or given.get("initial_state") is None:
        return o, s
    factor = given.get("scale") if given.get("scale") is not None else given["q"].shape[-1] ** -0.5
    groups = given["v"].shape[2] // given["q"].shape[2]
    q = given["q"].repeat_interleave(groups, 2)
    return torch.einsum("bthk,bhkv->bthv", q * factor, given["initial_state"].to(q.dtype)), s


@SCALES
@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("wrong", [ignores_the_state, state_turned, tiled_heads, reads_before_the_write], ids=lambda f: f.__name__)
def test_the_map_of_one_token_is_seen(wrong, name, scale):
    assert result_of("one-step-map", name, like(name)(wrong), scale).verdict == "violated"


# right forms ------------------------------------------------------------------------------------------------------


NEW = ("every-length", "one-step-map", "state-alone", "shift-invariance", "calls-apart", "two-continuations", "batch-company")


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("law", NEW)
def test_a_right_form_holds(law, name):
    result = run_law(LAWS[law], operator(name), Form("right", RIGHT[name]), examples=6, corners=4)
    without = name == "attention" and law in ("one-step-map", "state-alone", "shift-invariance", "two-continuations")
    nothing = name == "wkv" and law in ("one-step-map", "shift-invariance")
    assert result.verdict == ("not-applicable" if without or nothing else "holds"), result


def test_every_kind_of_fault_has_laws():
    known = [kind for law in laws() for kind in law.kinds]
    assert set(known) == set(KINDS) - {"K18"}
    assert all(law.kinds for law in laws())


@pytest.mark.parametrize(("kept", "verdict"), [(1.0, "holds"), (0.0, "violated")])
def test_a_state_that_is_handed_out_and_never_taken_is_compared(kept, verdict):
    def form(q, k, v, scale=None, output_final_state=False):
        o, state = linear_attention.recurrent(q, k, v, scale, output_final_state=output_final_state)
        return o, state if state is None else state * kept

    result = run_law(LAWS["state-equals-oracle"], operator("linear-attention"), Form("form", form), examples=2, corners=4)
    assert result.verdict == verdict
