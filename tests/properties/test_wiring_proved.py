"""A wiring is proved before it is believed: wrong wirings are refused, and every wrong reference breaks a law through every right one."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

from isoform.impl import delta_rule, gated_delta_rule, linear_attention
from isoform.properties.columns import columns, operator, operators
from isoform.properties.laws import laws
from isoform.properties.operator import Form
from isoform.properties.running import run_law
from isoform.properties.wiring import SIGNATURES, Bridge, WiringError, adapt, disguise, parse_map, prove, proving
from isoform.properties.wiring.wrongs import wrongs

RIGHT = {o.name: importlib.import_module(f"isoform.impl.{c.replace('-', '_')}").FORMS[o.name][0] for c in columns() for o in operators(c)}


def conventions(o, name):
    try:
        first = SIGNATURES[name](o)
    except WiringError:
        return ()
    return (first, *first.otherwise)


ALL = [
    pytest.param(o, w, id=f"{name}-{o.name}-{len(w.marks)}")
    for c in columns()
    for o in operators(c)
    for name in ("plain", "mamba", "sdpa", "onnx")
    for w in conventions(o, name)
]
FEW = [p for p in ALL if p.id.split("-", 1)[1][:-2] in ("linear-attention", "gated-retention", "causal-conv1d", "attention", "delta-rule")]


@pytest.mark.parametrize(("o", "wiring"), FEW)
def test_a_convention_is_proved(o, wiring):
    assert prove(o, wiring, RIGHT[o.name], wiring.limits) is None


@pytest.mark.deep
@pytest.mark.parametrize(("o", "wiring"), ALL)
def test_every_convention_is_proved(o, wiring):
    assert prove(o, wiring, RIGHT[o.name], wiring.limits) is None


GATED = operator("gated-delta-rule")
PLAIN = SIGNATURES["plain"](GATED)


def mapped(text):
    return parse_map(text, GATED, PLAIN)


MISTAKEN = [
    ("the order of the state", "initial_state[b hv v k]", ""),
    ("the state that comes back", "initial_state[b hv v k] -> out, state[b hv v k]", "initial_state[b hv v k] -> out, state[b hv k v]"),
    ("heads first", "head-first", ""),
    ("time first", "", "head-first"),
    ("linear gates for logs", "g=exp(g)", ""),
    ("logs for linear gates", "", "g=exp(g)"),
    ("another sign", "g=-g", ""),
    ("queries for keys", "q=k, k=q", ""),
    ("outputs swapped", "q -> state, out", ""),
    ("gates for rates", "g=beta, beta=g", ""),
]
"""What a kernel speaks, and what it is taken to speak."""


@pytest.mark.parametrize(("spoken", "heard"), [pytest.param(a, b, id=what) for what, a, b in MISTAKEN])
def test_a_wrong_wiring_is_refused(spoken, heard):
    problem = prove(GATED, mapped(heard), gated_delta_rule.recurrent, mapped(heard).limits, spoken=mapped(spoken))
    assert problem is not None and problem.reference == "our right form"
    assert str(problem).startswith("the wiring is not proved: our right form breaks ") and "\n" not in str(problem)


@pytest.mark.parametrize("spoken", [1.0, None])
def test_a_wrong_default_of_the_scale_is_refused(spoken):
    o = operator("linear-attention")
    base = SIGNATURES["plain"](o).without("scale")
    heard, said = replace(base, own_scale=1.0 if spoken is None else None), replace(base, own_scale=spoken)
    assert prove(o, said, linear_attention.recurrent) is None
    problem = prove(o, heard, linear_attention.recurrent, spoken=said)
    assert problem is not None and problem.reference == "our right form"


def same(function):
    return function


def healing(name):
    """A bridge that hides one fault of a kernel: it computes what is asked for by itself."""
    right = RIGHT["linear-attention"]

    def into(kernel):
        def call(q, k, v, scale=None, initial_state=None, output_final_state=False):
            given = {"scale": scale, "initial_state": initial_state, "output_final_state": output_final_state}
            out, state = kernel(q=q, k=k, v=v, **given)
            own, last = right(q, k, v, **given)
            return (own, state) if name == "outputs" else (out, last)

        return call

    return Bridge(into, same)


@pytest.mark.parametrize(("name", "wrong"), [("outputs", "zeros"), ("states", "the state one token late")])
def test_an_adapter_that_heals_is_refused(name, wrong):
    o = operator("linear-attention")
    wiring = replace(SIGNATURES["plain"](o), bridge=healing(name)).without("cu_seqlens", "chunk_size")
    problem = prove(o, wiring, linear_attention.recurrent)
    assert problem is not None and problem.reference == f"a wrong form ({wrong})" and problem.found == "breaks no law"


def test_a_wiring_through_which_nothing_can_be_seen_is_refused(monkeypatch):
    monkeypatch.setattr(proving, "LAWS", ("chunk-size",))
    problem = prove(GATED, PLAIN.without("chunk_size"), gated_delta_rule.recurrent)
    assert problem is not None and problem.found.startswith("is seen by no law")


@pytest.mark.parametrize("o", [p.values[0] for p in ALL if p.id.startswith("plain")], ids=lambda o: o.name)
def test_wrong_references_are_wrong_and_otherwise_called_alike(o):
    """Each differs from the right one somewhere in the first corner cases."""
    right, shown = proving.fixed(RIGHT[o.name], o), set(map(str, (o.state_argument, o.final_argument)))
    found = dict(wrongs(o, right, shown if "state" in o.capabilities else set(), False))
    assert {"zeros", "every output times 1.004", "inputs rounded to 16 bits"} <= set(found)
    assert ("the carry dropped" in found) == ("state" in o.capabilities)
    for name, wrong in found.items():
        assert any(differs(o, right, wrong, case) for case in o.corners()[:6]), name


def differs(o, right, wrong, case):
    x = o.draw(case)
    (a, s), (b, r) = o.run(right, x), o.run(wrong, x)
    return not np.array_equal(a, b, equal_nan=True) or not (s is None or np.array_equal(s, r, equal_nan=True))


def test_the_wrong_references_of_a_memory_are_all_there():
    names = [n for n, _ in wrongs(GATED, gated_delta_rule.recurrent, {GATED.state_argument, GATED.final_argument}, False)]
    assert names == [
        "zeros",
        "every output times 1.004",
        "inputs rounded to 16 bits",
        "q and k swapped",
        "the mean over time",
        "the last token dropped",
        "the carry dropped",
        "the state ignored on the way in",
        "the state one token late",
        "the state backwards",
        "the state transposed",
    ]


def test_a_kernel_that_ignores_its_state_is_violated_whatever_its_signature():
    law = next(law for law in laws() if law.name == "split-and-resume")

    def deaf(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        return delta_rule.recurrent(q, k, v, beta, scale, None, output_final_state)

    o = operator("delta-rule")
    for name in ("plain", "onnx"):
        wiring = SIGNATURES[name](o)
        form = Form("deaf", adapt(disguise(deaf, o, wiring), o, wiring), limits=wiring.limits)
        assert run_law(law, o, form, examples=0, corners=3, minimise=False).verdict == "violated"
