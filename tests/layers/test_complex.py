"""Complex layers: generated forms are right in values, dtypes and gradients, and wrong conjugates and real parts are seen."""

import pytest
import torch

from isoform.derivations.kernel.terms import Conj, Diag, Eye, Hadamard, Inverse, Num, Transpose, indices
from isoform.derivations.layer.call import Domain, domain
from isoform.derivations.layer.declare import layer
from isoform.derivations.layer.functions import sigmoid, tanh
from isoform.derivations.layer.torch_code import torch_code
from isoform.derivations.layer.torch_terms import CannotWrite
from isoform.properties.declared import operator_of
from isoform.properties.running import run_law

from .declarations import LRU, Example
from .generated import LAWS, SHORT, forms, module, operator, source

n, p, d, d_k, d_v = indices("n p d d_k d_v")
TURNING = Example(
    layer(
        "turning",
        inputs={"q": d_k, "k": d_k, "v": d_v, "z": 1, "g": 1},
        state={"S": (d_v, d_k)},
        update=lambda S, k, v, z, g: sigmoid(g) * z * S + v * Transpose(Conj(k)),
        read=lambda S, q: (S * q + Conj(S * q)) / 2,
        domains={"q": "complex", "k": "complex", "z": "complex, |z| <= 1"},
        source="nobody: a real gate beside a turn at every token, keys that are conjugated, and the real part",
    )
)
SOLVED = Example(
    layer(
        "solved",
        inputs={"u": p},
        parameters={"A": n, "B": (n, p), "C": (d, n)},
        state={"x": n},
        update=lambda x, u, A, B: Inverse(Eye(n) - Diag(A)) * (Diag(A) * x + B * u),
        read=lambda x, C: C * x + Conj(C * x),
        domains={"A": "complex, |A_i| <= 1/4", "B": "complex", "C": "complex"},
        source="nobody: an implicit step, and twice the real part",
    ),
    heads=False,
)
BENT = Example(
    layer(
        "bent",
        inputs={"u": n},
        parameters={"A": n},
        state={"x": n},
        update=lambda x, u, A: Diag(A) * x + Hadamard(x, x) / 8 + u,
        read=lambda x: x,
        domains={"u": "complex", "A": "complex, |A_i| <= 1/2"},
        source="nobody: not affine",
    ),
    heads=False,
)
EVERY = (TURNING, SOLVED, BENT)
ids = pytest.mark.parametrize("example", EVERY, ids=lambda e: e.declaration.operator)


@ids
def test_every_law_holds(example):
    found, own, applied = forms(example), operator(example), 0
    assert [f.name for f in found] == ["recurrent", *(["parallel_scan"] if example is not BENT else [])]
    for law in SHORT:
        for form in found:
            result = run_law(law, own, form, examples=0, corners=2, minimise=False)
            assert result.verdict in ("holds", "not-applicable"), f"{form.name}: {law.name}: {result.detail}"
            applied += result.verdict == "holds"
    assert applied >= 18 * len(found)


@pytest.mark.deep
@ids
def test_every_law_holds_on_many_cases(example):
    for law in LAWS.values():
        for form in forms(example):
            result = run_law(law, operator(example), form, examples=100, minimise=False)
            assert result.verdict in ("holds", "not-applicable"), f"{form.name}: {law.name}: {result.detail}"


ORACLE, STATE, GRADIENT = "form-equals-oracle", "state-equals-oracle", "gradient-of-inputs"
CONJUGATED = "({0}.detach() + {0}.conj() - {0}.conj().detach())"
"""The same number, of which the gradient is conjugated."""
WRONG = [
    (LRU, "recurrent", ORACLE, "return lam * x", "return lam.conj() * x"),
    (LRU, "recurrent", STATE, "return lam * x", "return lam.conj() * x"),
    (LRU, "recurrent", ORACLE, "o = C @ x + ", "o = C @ (x.real + 0j) + "),
    (LRU, "recurrent", ORACLE, "return o.to(dtype), ", "return o.real, "),
    (LRU, "parallel_scan", ORACLE, "_scanned(lam, ", "_scanned(lam.conj(), "),
    (LRU, "parallel_scan", ORACLE, "_scanned(lam, ", "_scanned(lam.abs() + 0j, "),
    (LRU, "recurrent", GRADIENT, "lam = lam.to(dtype)", f"lam = {CONJUGATED.format('lam')}.to(dtype)"),
    (LRU, "parallel_scan", GRADIENT, "C = C.to(dtype)", f"C = {CONJUGATED.format('C')}.to(dtype)"),
    (LRU, "recurrent", GRADIENT, "B = B.to(dtype)", "B = (B.real + 1j * B.imag.detach()).to(dtype)"),
    (TURNING, "recurrent", ORACLE, "k.conj_physical().mT", "k.mT"),
    (TURNING, "parallel_scan", ORACLE, "(S @ q).conj_physical()", "(S @ q)"),
    (TURNING, "recurrent", GRADIENT, "torch.sigmoid(g.real)", "torch.sigmoid(g.real.detach())"),
    (SOLVED, "recurrent", ORACLE, "(C @ x).conj_physical()", "(C @ x).conj_physical() * 1j"),
    (BENT, "recurrent", ORACLE, "x * x", "x * x.conj()"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("example", "name", "law", "old", "new"), [pytest.param(*e, id=f"{e[0].declaration.operator}-{e[1]}-{e[2]}-{e[4]}") for e in WRONG]
)
def test_a_wrong_conjugate_or_real_part_is_seen(example, name, law, old, new):
    whole = forms(example)
    right = next(f for f in whole if f.name == name)
    wrong = next(f for f in forms(example, (old, new)) if f.name == name)
    found = [run_law(LAWS[law], operator(example), f, examples=4, corners=3, minimise=False).verdict for f in (right, wrong)]
    assert found == ["holds", "violated"]


@pytest.mark.parametrize(
    ("given", "parameters", "found"),
    [
        ("float32", "complex64", "complex64"),
        ("bfloat16", "complex64", "complex64"),
        ("float64", "complex128", "complex128"),
        ("float32", "float32", "complex64"),
    ],
)
def test_states_and_outputs_are_complex(given, parameters, found):
    made = module(source(LRU))
    kind, unreal = getattr(torch, given), getattr(torch, parameters)
    call = {"u": torch.rand(2, 3, 4, dtype=kind), "D": torch.rand(2, 4, dtype=kind)}
    call |= {name: torch.rand(size, dtype=unreal) for name, size in {"lam": (5,), "B": (5, 4), "C": (2, 5)}.items()}
    for form in made.FORMS["lru"]:
        o, state = form(**call, output_final_state=True)
        assert o.dtype == state.dtype == getattr(torch, found)
    o, state = made.step(**call | {"u": call["u"][:, 0]})
    assert o.dtype == state.dtype == getattr(torch, found)
    with pytest.raises(TypeError, match=r"lru\.recurrent: u has dtype torch\.complex64; allowed are float64, float32, bfloat16, float16"):
        made.recurrent(**call | {"u": torch.rand(2, 3, 4, dtype=torch.complex64)})


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("complex", Domain()),
        ("complex, |lam_i| <= 1", Domain(low=0, high=1, modulus=True)),
        ("complex, |lam_i| = 1", Domain(low=1, high=1, modulus=True)),
        ("complex, |k| <= 2", Domain(high=2, norm=True)),
        ("real, |x_i| <= 2", Domain(low=-2, high=2)),
    ],
)
def test_domains_of_complex_numbers(words, found):
    assert domain(words) == found


def test_what_complex_numbers_do_not_have_is_said():
    with pytest.raises(ValueError, match=r"'complex, 0 <= z <= 1'; understood are 'complex', '\|x\| <= HIGH'"):
        domain("complex, 0 <= z <= 1")
    with pytest.raises(ValueError, match="of entries it can be said that they are at most so large"):
        domain("complex, 1 <= |z_i|")
    with pytest.raises(ValueError, match="z is complex, and a logarithm is given for real decays alone"):
        operator_of(TURNING.declaration, logs={"z": "g"})
    given = {"inputs": {"z": n}, "state": {"h": n}, "domains": {"z": "complex"}, "read": lambda h: h, "source": "nobody"}
    turned = layer("turned", **given, update=lambda h, z: Conj(h) + z)
    with pytest.raises(ValueError, match="turned conjugates a state in its update"):
        operator_of(turned)
    assert "h.conj_physical()" in torch_code(turned)
    with pytest.raises(CannotWrite, match=r"a function of real numbers has a complex argument: torch\.tanh"):
        torch_code(layer("bounded", **given, update=lambda h, z: tanh(h) + Num(2) * z))
