"""The operator of a declaration: it accepts the house's own forms, rejects planted faults, and says where it is blind."""

import importlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from isoform.derivations.delta_rule import DECLARATION as DELTA_RULE
from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Exp, Eye, Inverse, Num, indices, recurrence, scalar, scalars, vectors
from isoform.derivations.layer.call import Domain, domain
from isoform.derivations.layer.declare import layer
from isoform.derivations.layer.functions import absolute, larger
from isoform.properties.columns import operator as column_operator
from isoform.properties.crosscheck import forms_of
from isoform.properties.declared import operator_of
from isoform.properties.declared.affine import affine
from isoform.properties.declared.layer import Layer
from isoform.properties.declared.numbers import Rounded
from isoform.properties.declared.token import token
from isoform.properties.laws import laws
from isoform.properties.laws.table import Comparison
from isoform.properties.operator import Form, Instance
from isoform.properties.running import run_law

from ..planted.faults import gates as faults
from ..planted.gated import form
from .declarations import GRU, KDA, MLSTM, Example
from .generated import LAWS, forms

LOGS = {
    "linear-attention": {},
    "gated-retention": {"gamma": "g"},
    "gated-linear-attention": {"a": "gk", "e": "gv"},
    "delta-rule": {},
    "gated-delta-rule": {"gamma": "g"},
}
d_k, d_v, n = indices("d_k d_v n")
(t,) = indices("t")


@cache
def generic(name):
    """The operator that the declaration of a column alone makes."""
    declaration = importlib.import_module(f"isoform.derivations.{name.replace('-', '_')}").DECLARATION
    return operator_of(declaration, logs=LOGS[name])


@pytest.mark.parametrize("name", LOGS)
def test_the_forms_of_the_house_are_accepted(name):
    impl = importlib.import_module(f"isoform.impl.{name.replace('-', '_')}")
    held = 0
    for law in laws():
        for tested in forms_of(impl.FORMS[name], impl.STEPS[name]):
            if law.name == "long-sequence" and name != "linear-attention":
                continue
            result = run_law(law, generic(name), tested, examples=0, corners=2, minimise=False)
            assert result.verdict in ("holds", "not-applicable"), f"{tested.name}: {law.name}: {result.detail}"
            held += result.verdict == "holds"
    assert held >= 18 * len(impl.FORMS[name])


KINDS = (
    ("form-equals-oracle", faults.WriteDecaysAtOnce),
    ("form-equals-oracle", faults.GateOfTheTokenBefore),
    ("form-equals-oracle", faults.GateOfTheNextToken),
    ("form-equals-oracle", faults.StartNotFaded),
    ("form-equals-oracle", faults.ReadsTheOldState),
    ("form-equals-oracle", faults.ReadsTheFadedState),
    ("form-equals-oracle", faults.FirstGateForAll),
)


@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("name", ["gated-retention", "gated-linear-attention", "gated-delta-rule"])
@pytest.mark.parametrize(("law", "fault"), KINDS, ids=lambda x: getattr(x, "__name__", x))
def test_planted_faults_are_rejected(law, fault, name, scale):
    result = run_law(LAWS[law], generic(name), Form(fault.__name__, form(fault, name)), examples=6, scales=(scale,), minimise=False)
    assert result.verdict == "violated"


@pytest.mark.deep
@pytest.mark.parametrize("scale", ["small", "large"])
@pytest.mark.parametrize("name", ["gated-retention", "gated-linear-attention", "gated-delta-rule"])
def test_all_planted_faults_that_concern_one_layer_are_rejected(name, scale):
    """What speaks of groups, norms, other operators, 16-bit gradients, or of one token at a chunk's edge is not asked of it."""
    elsewhere = ("group-map", "result-dtypes", "reduction", "packed-equals-alone", "gradient-of-packed", "exact-bits")
    for law, found in faults.PLANTED.items():
        for fault, names in found:
            if name not in names or law in elsewhere or "Norm" in fault.__name__ or fault.__name__ in UNSEEN:
                continue
            tested = Form(fault.__name__, form(fault, name))
            result = run_law(LAWS[law], generic(name), tested, examples=30, scales=(scale,), minimise=False)
            assert result.verdict == "violated", (law, fault.__name__, result.detail)


UNSEEN = ("ResetLostEvery64", "ClampedAtTwenty", "FinalStateOfNoNumbersIsZero", "ShortGradientHalfAgain")


@pytest.mark.parametrize("name", LOGS)
def test_its_truth_is_that_of_the_operator_made_by_hand(name):
    own, other = generic(name), column_operator(name)
    for case in [c for c in own.corners() if c.dtype == "float32"][:4]:
        x = own.draw(case)
        found, known = own.refer(x), other.refer(x)
        assert np.array_equal(found.output, known.output) and np.array_equal(found.states, known.states)
        toward = {n: case.rng(1).standard_normal(a.shape) for n, a in x.inputs.items()}
        push = None if x.state is None else case.rng(2).standard_normal(x.state.shape)
        given = x, toward, push, case.rng(3).standard_normal(found.output.shape), case.rng(4).standard_normal(found.states[:, -1].shape)
        (a, wide), (b, narrow) = own.derive(*given), other.derive(*given)
        assert abs(a - b) <= 1e-9 * abs(b) and min(wide, narrow) > 0


@pytest.mark.parametrize("name", LOGS)
def test_its_bounds_are_of_the_size_of_those_made_by_hand(name):
    """They count the same roundings of any order of summation: neither may be a hundred times the other."""
    own, other = generic(name), column_operator(name)
    for case in [c for c in own.corners() if c.dtype == "float32"][:3]:
        x = own.draw(case)
        found, known = own.refer(x), other.refer(x)
        ratio = found.sharp.max() / known.sharp.max()
        assert 0.02 < ratio < 50, ratio


# where nothing can be said ------------------------------------------------------------------------


def test_a_bound_that_is_not_known_is_blind_and_not_a_pass():
    turning = Example(
        layer(
            "turning",
            inputs={"u": n},
            parameters={"W": (n, n)},
            state={"h": n},
            update=lambda h, u, W: Exp(W) * h + u,
            read=lambda h: h,
            domains={"W": "real, |W| <= 1"},
            source="nobody",
        )
    )
    own = operator_of(turning.declaration)
    for law in ("form-equals-oracle", "state-equals-oracle"):
        result = run_law(LAWS[law], own, forms(turning)[0], examples=2, corners=2, minimise=False)
        assert result.verdict == "unverified" and "blind" in result.detail
    x = own.draw(own.corners()[0])
    known = own.refer(x)
    assert own.derive(x, x.inputs, x.state, known.output, known.states[:, -1])[1] == np.inf


GROWING = Example(
    layer(
        "growing",
        inputs={"q": d_k, "k": d_k, "v": d_v, "a": 1},
        state={"H": (d_v, d_k)},
        update=lambda H, k, v, a: a * H + v * k.T,
        read=lambda H, q: H * q,
        domains={"a": "real, 50 <= a <= 90"},
        source="nobody",
    )
)


def test_a_state_that_grows_beyond_all_numbers_is_blind_and_no_violation():
    own, (form, _) = operator_of(GROWING.declaration), forms(GROWING)
    case = next(c for c in own.corners() if c.size("t") == 70)
    truth = own.refer(own.draw(case))
    gone = np.isnan(truth.output)
    assert gone[:, -1].all() and not gone[:, 0].any() and np.isinf(truth.bound[gone]).all() and np.isnan(truth.states[:, -1]).all()
    found, _ = own.run(form.function, own.draw(case))
    assert not np.isfinite(found[gone]).any()
    for law in ("form-equals-oracle", "state-equals-oracle", "gradient-of-inputs", "finite-at-the-edges"):
        assert run_law(LAWS[law], own, form, examples=2, minimise=False).verdict == "holds"
    wrong = run_law(LAWS["form-equals-oracle"], own, forms(GROWING, ("a * H + v", "a * H - v"))[0], examples=2, minimise=False)
    assert wrong.verdict == "violated"


@pytest.mark.parametrize(("own", "lasts"), [(GROWING, False), (MLSTM, False), (KDA, True)], ids=["growing", "mlstm", "kda"])
def test_long_sequences_are_asked_for_where_they_have_a_bound(own, lasts):
    assert ("long" in operator_of(own.declaration, **own.call).capabilities) is lasts


def test_a_matrix_that_is_inverted_has_a_bound():
    solving = Example(
        layer(
            "solving",
            inputs={"x": n, "u": n},
            state={"h": n},
            update=lambda h, x, u: Inverse(Eye(n) + x * x.T) * h + u,
            read=lambda h: h,
            source="nobody",
        )
    )
    for law in ("form-equals-oracle", "state-equals-oracle", "gradient-of-inputs"):
        for edit, verdict in ((), "holds"), ((("+ x @ x.mT", "+ x @ x.mT * 1.001"),), "violated"):
            tested = forms(solving, *edit)[0]
            result = run_law(LAWS[law], operator_of(solving.declaration), tested, examples=2, corners=3, minimise=False)
            assert result.verdict == verdict, result


def test_a_layer_that_bends_too_much_is_blind():
    """h² doubles the digits of an error at every token: past the first few nothing is known in float32."""
    squares = layer(
        "squares",
        inputs={"x": 1},
        state={"h": 1},
        update=lambda h, x: Num(4) * h * (1 - h) + 0 * x,
        read=lambda h: h,
        source="the logistic map",
    )
    chaotic = operator_of(squares)
    cases = [c.resized(t=steps) for c in chaotic.corners()[:1] for steps in (3, 60)]
    few, many = (chaotic.refer(_in_range(chaotic.draw(c))) for c in cases)
    assert not Comparison("", few.output, few.output, few.bound, few.sharp).blind
    assert Comparison("", many.output, many.output, many.bound, many.sharp).blind


def _in_range(x):
    return replace(x, state=0.3 + 0 * x.state)


@pytest.mark.parametrize(("write", "found"), [(lambda a, b: a + 2 * b, True), (lambda a, b: a * b, False)], ids=["sum", "product"])
def test_states_that_are_written_to_a_third_are_affine_together_unless_multiplied(write, found):
    u, starts = scalars("u"), [scalar(f"{name}0") for name in "abc"]
    a, b = (recurrence(name, s, lambda t, h: h + u[t]) for name, s in zip("ab", starts, strict=False))
    c = recurrence("c", starts[2], lambda t, h: h / 2 + write(a[t - 1], b[t]))
    layer_of = Layer(Declaration("cascade", {"u": u}, c[t], t, (a, b, c), tuple(starts)))
    x = Instance({"u": np.ones((1, 3, 1))}, None, {}, "float32")
    at = token(layer_of, x, tuple(np.ones((1, 1, 3, 1, 1)) for _ in starts))
    assert layer_of.classification.affine
    assert (affine(at, Rounded(unit=2.0**-23)) is not None) is found


def test_a_size_costs_what_its_number_costs():
    """Beside a root of a square the error would be divided by what is left where terms cancel: by 2⁻¹⁰ of their sum here."""
    own = layer("sized", inputs={"x": 1, "y": 1}, state={"h": 1}, update=lambda h, x, y: x + y + 0 * h, read=absolute_of, source="nobody")
    x = Instance({"x": np.ones((1, 1, 1)), "y": np.full((1, 1, 1), 2.0**-10 - 1)}, None, {}, "float32")
    found = operator_of(own).refer(x)
    assert found.output.item() == 2.0**-10
    assert found.states_sharp is None and 0 < found.sharp.max() < 4 * found.states_bound[:, 1:].max()


def absolute_of(h):
    return larger(absolute(h), Num(1) / Num(2048))


def test_nothing_is_known_of_a_derivative_beside_a_corner():
    one, step = np.ones((1, 1)), 2.0**-200
    for x, beside in ((0.0, True), (1e-7, True), (1e-3, False)):
        given = x * one, one + 1j * step, 2.0**-20 * one + 0j
        for found in (Rounded(unit=2.0**-23).abs(given), Rounded(unit=2.0**-23).max(given, (0 * one, 0 * one, 0 * one))):
            assert np.all((found[2].imag >= 2 * step) == beside)
            assert np.all(found[2].real < 2.0**-19)
        assert np.all(np.isinf(Rounded(unit=2.0**-23, smooth=True).abs(given)[2].real) == beside)


# bounds are what they say -------------------------------------------------------------------------


@pytest.mark.parametrize("example", [KDA, MLSTM, GRU], ids=lambda e: e.declaration.operator)
def test_the_error_of_a_form_in_half_the_digits_is_within_the_bound_for_them(example):
    """float32 arithmetic against the truth, with the bounds for float32 and those for float64: the one holds, the other does not."""
    own = operator_of(example.declaration, **example.call)
    recurrent = forms(example)[0].function
    case = own.corners()[0]
    x = own.draw(case)
    given = own.tensors(x)
    found = recurrent(**given)[0].to(torch.float64).numpy()
    wide, narrow = own.refer(x), own.refer(replace(x, dtype="float64"))
    assert np.all(np.abs(found - wide.output) <= wide.bound)
    assert np.any(np.abs(found - wide.output) > narrow.bound)


# what is asked of a declaration -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("real", Domain()),
        ("real, 0 <= a_i <= 1", Domain(low=0, high=1)),
        ("real, <= 0", Domain(high=0)),
        ("real, delta >= 0", Domain(low=0)),
        ("<= 0, -inf among them", Domain(high=0, endless=True)),
        ("real, |k| = 1", Domain(low=1, high=1, norm=True)),
        ("real, 0 <= beta |k|^2 <= 1/2", Domain(low=0, high=0.5, times="k")),
    ],
)
def test_domains_are_read_from_their_words(words, found):
    assert domain(words) == found


def test_a_domain_that_is_not_understood_is_one_sentence():
    with pytest.raises(ValueError, match="the domain of k is 'real, prime'; understood are 'real', 'LOW <= x <= HIGH'"):
        domain("real, prime", "the domain of k")
    with pytest.raises(ValueError, match="the domain of k is 'real, 1 <= k <= 0', and no number lies there"):
        domain("real, 1 <= k <= 0", "the domain of k")
    with pytest.raises(ValueError, match=r"the domain is 'complex, \|k\| <= -1', and no number lies there"):
        domain("complex, |k| <= -1")
    with pytest.raises(ValueError, match="the domain is 'real, k <= 1/0'; understood are"):
        domain("real, k <= 1/0")


def test_declarations_without_an_operator_are_refused():
    with pytest.raises(ValueError, match="has no state: only recurrences have an operator of their own"):
        operator_of(Declaration("map", {"x": vectors("x", n)}, vectors("x", n)[t], t))
    with pytest.raises(ValueError, match="has no input gama; it has q, k, v, beta"):
        operator_of(DELTA_RULE, logs={"gama": "g"})
    with pytest.raises(ValueError, match="two arguments are called 'k'; call the logarithm something else"):
        operator_of(DELTA_RULE, logs={"beta": "k"})
    given = {"inputs": {}, "parameters": {"A": (n, n)}, "state": {"h": n}, "update": lambda h, A: A * h, "read": lambda h: h}
    with pytest.raises(ValueError, match="alone has no input that tokens bring"):
        operator_of(layer("alone", **given, source="nobody"))


def test_a_truth_beyond_the_range_of_floats_is_infinite():
    given = {"inputs": {"b": 1, "g": 1}, "state": {"h": 1}, "update": lambda h, b, g: (1 - b) * (1 - g) * h + b, "read": lambda h: h}
    found = Layer(layer("growing", **given, source="nobody"), True, {})
    large = np.full((1, 9, 1), -(2.0**70))
    out, _ = found.truth(Instance({"b": large, "g": large}, None, {}, "float64"))
    assert out.shape == (1, 1, 9, 1, 1)
    assert np.isfinite(out[0, 0, 0]).all()
    assert np.isinf(out[0, 0, -1]).all()


def test_the_root_of_a_complex_square_is_no_modulus():
    given = {"inputs": {"z": 1}, "state": {"h": 1}, "domains": {"z": "complex"}, "read": lambda h: h, "source": "nobody"}
    found = operator_of(layer("rooted", **given, update=lambda h, z: h / 2 + absolute(z)))
    z, along, weights = np.array([[[0.75 + 0.5j]]]), {"z": np.array([[[0.25 - 1j]]])}, np.array([[[1 - 2j]]])
    slope, _ = found.derive(Instance({"z": z}, None, {}, "float64"), along, None, weights, np.zeros((1, 1)))
    assert np.isclose(slope, np.vdot(weights, along["z"]).real)


def test_tokens_that_change_nothing_are_found():
    assert ("k", "beta") not in generic("gated-delta-rule").neutral
    assert set(generic("delta-rule").neutral) == {("k",), ("beta",)}
    own = generic("gated-delta-rule")
    assert ("k", "g") in own.neutral and own.neutral_value(None, "g") == 0.0
    forgetting = layer(
        "forgetting",
        inputs={"f": 1, "x": 1},
        state={"h": 1},
        update=lambda h, f, x: f * h + (1 - f) * x,
        read=lambda h: h,
        domains={"f": "real, 0 <= f <= 1"},
        source="nobody",
    )
    own = operator_of(forgetting)
    assert own.neutral == (("f",),) and own.neutral_value(None, "f") == 1.0


def test_a_log_decay_in_an_exponential_is_drawn_as_one():
    fading = layer(
        "fading",
        inputs={"g": 1, "x": 1},
        state={"h": 1},
        update=lambda h, g, x: Exp(g) * h + x,
        read=lambda h: h,
        domains={"g": "real, <= 0"},
        source="nobody",
    )
    own = operator_of(fading)
    drawn = [own.draw(c).inputs["g"] for c in own.corners()]
    assert all(np.isfinite(g).all() and (g <= 0).all() for g in drawn)
    assert own.neutral == (("g", "x"),)
