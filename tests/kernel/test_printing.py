"""Text and LaTeX: exact spellings, and that different terms are spelt differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import prod
from typing import Any

import pytest

from isoform.derivations.kernel.formulas import (
    And,
    Assumption,
    Equation,
    ForAll,
    Formula,
    Iff,
    Implies,
    Invertible,
    Less,
    LessEqual,
    NonZero,
    Statement,
)
from isoform.derivations.kernel.naming import Names
from isoform.derivations.kernel.printing import latex, text
from isoform.derivations.kernel.terms import (
    Add,
    Apply,
    At,
    Block,
    Cond,
    Conj,
    Deriv,
    Diag,
    Entry,
    Exp,
    Expect,
    Eye,
    Hadamard,
    Ind,
    Index,
    Integral,
    Inverse,
    Log,
    Mul,
    NegInf,
    Num,
    Power,
    Prod,
    Recurrence,
    Row,
    Rows,
    SameShape,
    ScalarTerm,
    ShapeError,
    Sqrt,
    Stack,
    Sum,
    Term,
    Trace,
    Transpose,
    Where,
    Zero,
    entries,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrices,
    matrix,
    named,
    norm2,
    recurrence,
    scalar,
    scalars,
    unnamed,
    vectors,
)

i, j, s, t, T, d = indices("i j s t T d")
k, v, q = (vectors(name, d) for name in "kvq")
beta, alpha = scalars("beta"), scalars("a")
x, y, gamma, delta, time = (scalar(name) for name in ("x", "y", "gamma", "Delta", "s"))
A, B, C = (matrix(name, d, d) for name in "ABC")
H = recurrence("H", Zero(d, d), lambda t, p: p - beta[t] * (p * k[t] * k[t].T))
score = Exp(q[t].T * k[j])


def slot(at: Index) -> Recurrence:
    return recurrence("K", Zero(d, 1), lambda t, p: Where(equal(t, at), k[t], p))



root = scalar("lambda", "complex")
NESTED = r"\left\|\left(1 - \left\|v_{t}\right\|^{2}\right) k_{t}\right\|^{2}"

SPELLINGS: dict[str, tuple[Any, str, str]] = {
    "recursion": (H[t - 1], "H_{t−1}", "H_{t-1}"),
    "sum": (Sum(v[j] * k[j].T, j, 1, t), "Σ_{j=1..t} v_j k_jᵀ", r"\sum_{j=1}^{t} v_{j} k_{j}^{\top}"),
    "increasing": (
        Prod(Eye(d) - beta[s] * k[s] * k[s].T, s, j + 1, t),
        "Π→_{s=j+1..t} (I − β_s k_s k_sᵀ)",
        r"\mathop{\underset{s=j+1}{\overset{t}{\overrightarrow{\prod}}}} \left(I - \beta_{s} k_{s} k_{s}^{\top}\right)",
    ),
    "decreasing": (
        Prod(A, s, j + 1, t, True) * v[j],
        "(Π←_{s=j+1..t} A) v_j",
        r"\left(\mathop{\underset{s=j+1}{\overset{t}{\overleftarrow{\prod}}}} A\right) v_{j}",
    ),
    "scalar product": (Prod(beta[s], s, 1, t), "Π_{s=1..t} β_s", r"\prod_{s=1}^{t} \beta_{s}"),
    "power": (gamma ** (t - j), "γ^{t−j}", r"\gamma^{t-j}"),
    "indicator": (indicator(le(j, t)), "[j ≤ t]", r"\left[j \le t\right]"),
    "where": (
        Where(le(1, j) & le(j, t), q[t], v[j]),
        "{q_t if 1 ≤ j ≤ t; else v_j}",
        r"\begin{cases} q_{t} & \text{if } 1 \le j \le t \\ v_{j} & \text{otherwise} \end{cases}",
    ),
    "exp": (Exp(time), "exp(s)", r"\exp\left(s\right)"),
    "log zero": (Exp(NegInf()), "exp(−∞)", r"\exp\left(-\infty\right)"),
    "adjoint": (A.H, "Aᴴ", "A^{*}"),
    "conjugate": (Conj(A), "conj(A)", r"\overline{A}"),
    "hadamard": (Hadamard(A * B, C), "(A B) ⊙ C", r"\left(A B\right) \odot C"),
    "diag": (Diag(v[t]), "diag(v_t)", r"\operatorname{diag}\left(v_{t}\right)"),
    "trace": (Trace(A), "tr(A)", r"\operatorname{tr}\left(A\right)"),
    "roots": (Sqrt(x) * Log(y), "√(x) log(y)", r"\sqrt{x} \log\left(y\right)"),
    "inverse": (Inverse(A) * v[t], "A⁻¹ v_t", "A^{-1} v_{t}"),
    "integral": (Integral(Exp(A * time), time, 0, delta), "∫_{0}^{Δ} e^{A s} ds", r"\int_{0}^{\Delta} e^{A s}\,ds"),
    "derivative": (Deriv(A + B, time), "d/ds (A + B)", r"\frac{d}{ds}\left(A + B\right)"),
    "value": (At(Exp(time), time, 0), "(exp(s))|_{s=0}", r"\left.\exp\left(s\right)\right|_{s=0}"),
    "softmax": (
        Sum(score * v[j], j, 1, t) / Sum(score, j, 1, t),
        "(Σ_{j=1..t} exp(q_tᵀ k_j) v_j) / (Σ_{j=1..t} exp(q_tᵀ k_j))",
        r"\frac{\sum_{j=1}^{t} \exp\left(q_{t}^{\top} k_{j}\right) v_{j}}{\sum_{j=1}^{t} \exp\left(q_{t}^{\top} k_{j}\right)}",
    ),
    "mean": (1 / Ind(t + 1), "1 / (t+1)", r"\frac{1}{t+1}"),
    "row": (Row(A * B, i), "(A B)[i,:]", r"\left(A B\right)[i,:]"),
    "entry": (Entry(A, i, j + 1), "A[i,j+1]", "A[i,j+1]"),
    "prefix": (Rows(A, 1, t), "A[1:t]", "A[1{:}t]"),
    "stack": (Stack(v[i].T, i, 1, T), "[v_iᵀ]_{i=1..T}", r"\left[v_{i}^{\top}\right]_{i=1,\dots,T}"),
    "entries": (
        entries(alpha[i, j], i, (1, T), j, (1, t)),
        "[a_{i,j}]_{i=1..T, j=1..t}",
        r"\left[a_{i,j}\right]_{i=1,\dots,T,\ j=1,\dots,t}",
    ),
    "entries of one range": (entries(alpha[i, j], i, (1, T), j, (1, T)), "[a_{i,j}]_{i,j=1..T}", r"\left[a_{i,j}\right]_{i,j=1,\dots,T}"),
    "a stack transposed": (Stack(k[i].T, i, 1, T).T, "[k_iᵀ]_{i=1..T}ᵀ", r"\left[k_{i}^{\top}\right]_{i=1,\dots,T}^{\top}"),
    "modulus": (2 * (Conj(root) * root), "2 |λ|²", r"2 \left|\lambda\right|^{2}"),
    "norm of a product": (norm2(A * v[t]), "‖A v_t‖²", r"\left\|A v_{t}\right\|^{2}"),
    "a row, a column and a matrix": (Mul(k[t].T, v[t], A), "k_tᵀ v_t A", r"k_{t}^{\top} v_{t} A"),
    "norm in a norm": (
        norm2(norm2(v[t]) * k[t]),
        "(‖v_t‖² k_t)ᵀ ‖v_t‖² k_t",
        r"\left(\left\|v_{t}\right\|^{2} k_{t}\right)^{\top} \left\|v_{t}\right\|^{2} k_{t}",
    ),
    "norm in parentheses in a norm": (norm2((1 - norm2(v[t])) * k[t]), "‖(1 − ‖v_t‖²) k_t‖²", NESTED),
    "norm": (1 - beta[t] * norm2(k[t]), "1 − β_t ‖k_t‖²", r"1 - \beta_{t} \left\|k_{t}\right\|^{2}"),
    "scalars before a scalar product": (1 - x * (beta[t] * (q[t].T * k[t])), "1 − x β_t q_tᵀ k_t", r"1 - x \beta_{t} q_{t}^{\top} k_{t}"),
    "a scalar product before a vector": ((q[t].T * k[j]) * v[j], "(q_tᵀ k_j) v_j", r"\left(q_{t}^{\top} k_{j}\right) v_{j}"),
    "a captured index": (slot(j)[t], "K_t(j)", r"K_{t}\left(j\right)"),
    "a named term": (named("Kbar", A * B ** t, t), "K̄_t", r"\bar{K}_{t}"),
    "a named function": (named("softmax", x + y, A * B), "softmax(A B)", r"\mathrm{softmax}\left(A B\right)"),
    "a named family of functions": (named("f", x ** t, t, x), "f_t(x)", r"f_{t}\left(x\right)"),
    "block": (
        Block([A, B], [Zero(d, d), Eye(d)]),
        "[A, B; 0, I]",
        r"\begin{bmatrix} A & B \\ 0 & I \end{bmatrix}",
    ),
    "apply": (Apply("phi", [v[t]], d, 1), "φ(v_t)", r"\phi\left(v_{t}\right)"),
    "expectation": (Expect(norm2(v[t]), "v", "k"), "E_{v,k}[‖v_t‖²]", r"\mathbb{E}_{v,k}\left[\left\|v_{t}\right\|^{2}\right]"),
    "a negative product": (A - Fraction(1, 2) * x * B, "A − ½ x B", r"A - \tfrac{1}{2} x B"),
    "minus first": (-(x + y), "−(x + y)", r"-\left(x + y\right)"),
    "coefficients": (Fraction(-1, 2) * A + 3 * B - C, "−½ A + 3 B − C", r"-\tfrac{1}{2} A + 3 B - C"),
    "signed index": (x + Ind(-t), "x + (−t)", r"x + \left(-t\right)"),
    "sum of quotients": (Sum(alpha[j] / x, j, 1, t), "Σ_{j=1..t} (a_j / x)", r"\sum_{j=1}^{t} \frac{a_{j}}{x}"),
    "integral of a sum": (Integral(x + y, time, 0, 1), "∫_{0}^{1} (x + y) ds", r"\int_{0}^{1} \left(x + y\right)\,ds"),
    "numbers side by side": (Num(-1) * Num(2) + x * Num(-3), "−1 · 2 + x (−3)", r"-1 \cdot 2 + x \left(-3\right)"),
    "strict": (lt(j, t) & le(i, j), "j < t, i ≤ j", r"j < t, i \le j"),
    "chain": (le(0, i) & lt(i, j) & le(j, T), "0 ≤ i < j ≤ T", r"0 \le i < j \le T"),
    "equal indices": (equal(j, t - 1), "j+1 = t", "j+1 = t"),
    "no condition": (Cond(), "true", r"\text{true}"),
    "index": (t - 2 * j + 1, "t−2j+1", "t-2j+1"),
    "falling index": (1 - t, "1−t", "1-t"),
    "equation": (Equation(x, y + 1), "x = y + 1", "x = y + 1"),
    "less": (Less(0, x), "0 < x", "0 < x"),
    "implication": (
        Implies(NonZero(x), And(Invertible(A), LessEqual(x, 1))),
        "x ≠ 0 ⟹ (A is invertible ∧ x ≤ 1)",
        r"x \ne 0 \implies \left(A \text{ is invertible} \wedge x \le 1\right)",
    ),
    "for all": (ForAll(NonZero(beta[t]), t, 1, T), "∀ t ∈ 1..T: β_t ≠ 0", r"\forall t \in \{1,\dots,T\}:\ \beta_{t} \ne 0"),
    "for all from": (ForAll(Iff(NonZero(x), NonZero(y)), t, 0), "∀ t ≥ 0: x ≠ 0 ⟺ y ≠ 0", r"\forall t \ge 0:\ x \ne 0 \iff y \ne 0"),
    "statement": (
        Statement(Equation(x, y), le(0, t) & le(t, T), (Assumption("unit_keys", Equation(norm2(k[t]), 1)),)),
        "x = y\n  for 0 ≤ t ≤ T\n  assuming unit_keys: ‖k_t‖² = 1",
        r"x = y \quad \text{for } 0 \le t \le T \quad \text{assuming unit\_keys: } \left\|k_{t}\right\|^{2} = 1",
    ),
    "bare statement": (Statement(Equation(x, y)), "x = y", "x = y"),
}


@pytest.mark.parametrize(("term", "plain", "tex"), SPELLINGS.values(), ids=SPELLINGS)
def test_spelling(term: Any, plain: str, tex: str) -> None:
    assert text(term) == plain
    assert latex(term) == tex


@pytest.mark.parametrize(
    ("name", "plain", "tex"),
    [
        ("x", "x", "x"),
        ("beta", "β", r"\beta"),
        ("Lambda", "Λ", r"\Lambda"),
        ("ell", "ℓ", r"\ell"),
        ("x0", "x₀", "{x_{0}}"),
        ("t_1", "t_1", "{t_{1}}"),
        ("beta_max", "β_max", r"{\beta_{\mathrm{max}}}"),
        ("H'", "H′", "{H'}"),
        ("H''_v", "H′′_v", "{{H''}_{v}}"),
        ("Abar", "Ā", r"\bar{A}"),
        ("Khat", "K\u0302", r"\hat{K}"),
        ("lambdatilde", "λ\u0303", r"\tilde{\lambda}"),
        ("decay", "decay", r"\mathrm{decay}"),
        ("crossbar", "crossbar", r"\mathrm{crossbar}"),
        ("1_a", "1_a", r"\mathrm{1\_a}"),
    ],
)
def test_names(name: str, plain: str, tex: str) -> None:
    assert (text(scalar(name)), latex(scalar(name))) == (plain, tex)


AMBIGUOUS: dict[str, tuple[Any, Any]] = {
    "transposed product": ((A * B).T, A * B.T),
    "product of a sum": (A * (B + C), A * B + C),
    "sum then factor": (Sum(alpha[j], j, 1, t) * x, Sum(alpha[j] * x, j, 1, t)),
    "sum then summand": (Sum(alpha[j], j, 1, t) + x, Sum(alpha[j] + x, j, 1, t)),
    "negated sum": (-(x + y), -x + y),
    "negated factor": ((-x) * y, -(x + y)),
    "quotients": (x / (y * gamma), (x / y) * gamma),
    "quotient of a quotient": (x / y / gamma, x / (y / gamma)),
    "number and reciprocal": (Num(Fraction(1, 2)), 1 / Num(2)),
    "sum of quotients": (Sum(alpha[j], j, 1, t) / x, Sum(alpha[j] / x, j, 1, t)),
    "power of a sum": (x ** (t + 1), x**t + 1),
    "power of a product": ((x * y) ** t, x * y**t),
    "power of a negative": ((-x) ** t, -(x**t)),
    "product over a product": (Prod(A * B, s, 1, t), Prod(A, s, 1, t) * B),
    "product over a sum": (Prod(A + B, s, 1, t), Prod(A, s, 1, t) + B),
    "orientation": (Prod(A, s, 1, t), Prod(A, s, 1, t, True)),
    "scalar orientation": (Prod(x, s, 1, t), Prod(x, s, 1, t, True)),
    "integral then summand": (Integral(x, time, 0, 1) + y, Integral(x + y, time, 0, 1)),
    "derivative then factor": (Deriv(x, time) * y, Deriv(x * y, time)),
    "index and sum": (Ind(t + 1), Ind(t) + 1),
    "index and product": (Ind(2 * t), 2 * Ind(t)),
    "names and members": (scalar("x0"), scalars("x")[0]),
    "hadamard and product": (Hadamard(A, B) * C, Hadamard(A, B * C)),
    "row of a product": (Row(A * B, i), Row(A, i) * B),
    "row of a transpose": (Row(A.T, i), Row(A, i).T),
    "conjugate order": (Conj(A.T), A.H),
    "a scalar product in the middle": (A * (x * y) * B, A * x * (y * B) * 2),
    "slots": (slot(i)[t], slot(j)[t]),
    "rows and entries": (Stack(Stack(alpha[i, j], j, 1, t).T, i, 1, t), Stack(Stack(alpha[i, j], i, 1, t).T, j, 1, t)),
    "ranges": (entries(alpha[i, j], i, (1, T), j, (1, T)), entries(alpha[i, j], i, (1, T), j, (1, t))),
}


@pytest.mark.parametrize("pair", AMBIGUOUS.values(), ids=AMBIGUOUS)
@pytest.mark.parametrize("spell", [text, latex])
def test_ambiguous_pairs(pair: tuple[Term, Term], spell: Callable[[Any], str]) -> None:
    assert spell(pair[0]) != spell(pair[1])


UNARY: list[Callable[[Term], Term]] = [
    Transpose,
    Conj,
    Inverse,
    Exp,
    Trace,
    lambda e: e.H,
    lambda e: -e,
    lambda e: e**2,
    lambda e: e ** (t + 1),
    lambda e: Sum(e, j, 1, t),
    lambda e: Prod(e, j, 1, t),
    lambda e: Prod(e, j, 1, t, True),
    lambda e: Deriv(e, x),
    lambda e: Integral(e, x, 0, 1),
    lambda e: At(e, x, 0),
    lambda e: indicator(le(j, t)) * e,
    lambda e: Where(le(j, t), e, e),
    lambda e: Row(e, t),
    lambda e: Rows(e, 1, t),
]
BINARY: list[Callable[[Term, Term], Term]] = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a / b,
    Hadamard,
]


def _built(makers: Iterable[Callable[..., Term]], *operands: Term) -> Iterator[Term]:
    for make in makers:
        try:
            yield make(*operands)
        except TypeError:  # shapes that do not fit
            continue


def _grown(pool: list[Term], atoms: list[Term]) -> list[Term]:
    new = [r for e in pool for r in _built(UNARY, e)]
    new += [r for e in pool for a in atoms for pair in ((e, a), (a, e)) for r in _built(BINARY, *pair)]
    return list(dict.fromkeys(pool + new))


@pytest.mark.parametrize("spell", [text, latex])
def test_all_small_terms_are_spelt_differently(spell: Callable[[Any], str]) -> None:
    atoms = [x, beta[j], A, matrices("B", d, d)[j], Num(-1), Num(1), Num(Fraction(1, 2))]
    pool = _grown(_grown(atoms, atoms), atoms[:3])
    spelt: dict[str, set[Term]] = defaultdict(set)
    for e in pool:
        spelt[spell(e)].add(_associated(e))
    assert len(pool) > 5000
    assert [same for same in spelt.values() if len(same) > 1] == []


def _associated(e: Any) -> Any:
    """A term with the products in its products written out where the shapes allow it, and numbers multiplied.

    These are the terms that a reader takes for one.
    """
    if not isinstance(e, (Term, Formula)):
        return e
    args = [_associated(a) for a in e.args]
    if isinstance(e, Mul) and len(numbers := [a for a in args if isinstance(a, Num)]) > 1:
        rest = [a for a in args if not isinstance(a, Num)]
        return _associated(Mul(Num(prod(n.value for n in numbers)), *rest))
    for n, a in enumerate(args):
        if isinstance(e, Mul) and isinstance(a, Mul):
            try:
                return _associated(Mul(*args[:n], *a.args, *args[n + 1 :]))
            except ShapeError:
                continue
    return e.func(*args)


def _classes(base: type[Any]) -> set[type[Any]]:
    below = {c for sub in base.__subclasses__() for c in _classes(sub)}
    abstract = base.__name__.startswith("_") or base in (Term, Formula, SameShape, ScalarTerm)
    return below if abstract else below | {base}


def test_every_class_can_be_printed() -> None:
    samples = [e for e, _, _ in SPELLINGS.values() if not isinstance(e, Statement)]
    seen = {type(node) for e in samples for node in _nodes(e)}
    # subclasses that other tests make are no part of the language
    ours = {c for c in {*_classes(Term), *_classes(Formula)} if c.__module__.startswith("isoform.")}
    assert len(ours) > 40
    assert ours <= seen
    with pytest.raises(TypeError, match="no way to print a object"):
        text(object())


def _nodes(e: Any) -> Iterator[Any]:
    yield e
    for a in e.args:
        yield from _nodes(a)


def test_terms_and_formulas_print_themselves() -> None:
    assert repr(Add(x, y)) == "x + y"
    assert str(Equation(Mul(x, y), Power(x, 2))) == "x y = x²"


def test_two_recursions_of_one_name_are_told_apart() -> None:
    one = recurrence("H", Zero(d, d), lambda t, h: h + v[t] * k[t].T)
    two = recurrence("H", Zero(d, d), lambda t, h: h + k[t] * v[t].T)
    assert text(Equation(one[t], two[t])) == "H_t = H′_t"
    assert text(Equation(one[t], one[t + 1])) == "H_t = H_{t+1}"
    names = Names((one[t], two[t]))
    assert [text(x[t], names) for x in (two, one)] == ["H′_t", "H_t"]


def test_one_recursion_at_two_captured_indices_is_one_family() -> None:
    assert text(Equation(slot(i)[t], slot(j)[s])) == "K_t(i) = K_s(j)"
    assert text(Equation(Sum(slot(j)[t], j, 1, t), slot(T)[0])) == "Σ_{j=1..t} K_t(j) = K_0(T)"


TOLD_APART: dict[str, tuple[Term, str]] = {
    "two bodies": (named("X", A) + named("X", B), "X + X′"),
    "one body": (named("X", A) + named("X", A), "X + X"),
    "a name and a matrix": (named("A", B) + A, "A′ + A"),
    "a name and a recursion": (named("H", A * gamma**t, t) + H[t], "H′_t + H_t"),
    "a name and a member": (named("B", A * gamma**t, t) + matrices("B", d, d)[t], "B′_t + B_t"),
    "one family": (named("X", A * gamma**t, t) + named("X", A * gamma ** (j + 1), j + 1), "X_t + X_{j+1}"),
    "not one family": (named("X", A * gamma**t, t) + named("X", A * gamma**j, j + 1), "X_t + X′_{j+1}"),
    "functions": (named("f", x * y, x) + named("f", gamma * y, gamma) + named("f", x * y, gamma), "f(x) + f(γ) + f′(γ)"),
    "a suffix": (named("X_out", A) + named("X_out", B), "X_out + X′_out"),
    "primes in use": (named("X", A) + named("X", B) + matrix("X'", d, d), "X + X′′ + X′"),
    "a hidden index": (Sum(named("X", A * gamma**j), j, 1, t), "Σ_{j=1..t} A γ^j"),
    "a shown index": (Sum(named("X", A * gamma**j, j), j, 1, t), "Σ_{j=1..t} X_j"),
}


@pytest.mark.parametrize(("term", "plain"), TOLD_APART.values(), ids=TOLD_APART)
def test_different_things_have_different_names(term: Term, plain: str) -> None:
    assert text(term) == plain


def _defined(*parts: Any) -> list[str]:
    names = Names(parts)
    return [", ".join(text(e, names) for e in x.equations) for x in names.definitions(parts)]


def test_definitions() -> None:
    assert _defined(Equation(H[t], A)) == ["H_0 = 0, H_t = H_{t−1} − β_t H_{t−1} k_t k_tᵀ"]
    assert _defined(Sum(H[j], j, 1, t), H[s]) == ["H_0 = 0, H_s = H_{s−1} − β_s H_{s−1} k_s k_sᵀ"]
    assert _defined(slot(t)[t]) == ["K_0(t) = 0, K_n(t) = {k_n if n = t; else K_{n−1}(t)}"]
    inner = named("Y", A * gamma**t, t)
    assert _defined(named("X", inner * B, t), named("Y", A * gamma**s, s)) == ["X_t = Y_t B", "Y_t = A γ^t"]
    assert _defined(A * B) == []


def test_nested_recursions_are_defined_one_after_the_other() -> None:
    nested = recurrence("S", x, lambda n, a: a + recurrence("R", Num(0), lambda m, b: b + alpha[n, m] * a)[n])
    assert _defined(nested[t]) == ["S_0 = x, S_t = S_{t−1} + R_t(t)", "R_0(t) = 0, R_n(t) = R_{n−1}(t) + a_{t,n} S_{t−1}"]


def test_no_name_is_shorter_than_what_it_says() -> None:
    """Two terms that are printed alike under common names are one term."""
    pool = [x for pair in TOLD_APART.values() for x in _nodes(pair[0]) if isinstance(x, Term)]
    names = Names(pool)
    spelt: dict[str, set[Term]] = defaultdict(set)
    for e in pool:
        spelt[text(e, names)].add(_associated(unnamed(e)))
    assert [same for same in spelt.values() if len(same) > 1] == []


def test_a_norm_inside_a_norm() -> None:
    """What has bars of its own stands in parentheses: no norm, and no search for one without an end."""
    n, t = indices("n t")
    k = vectors("k", n)
    x = k[t] - k[t] * norm2(k[t])
    assert text(norm2(x)) == "(k_t − k_t ‖k_t‖²)ᵀ (k_t − k_t ‖k_t‖²)"
    assert text(2 * norm2(x)) == "2 ((k_t − k_t ‖k_t‖²)ᵀ (k_t − k_t ‖k_t‖²))"
