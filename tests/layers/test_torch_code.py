"""Generated forms: right for layers of every kind, and no edit of them passes."""

import ast
from functools import cache

import pytest
import torch

from isoform.derivations.kernel.formulas import Declaration
from isoform.derivations.kernel.terms import Exp, Eye, Ind, Inverse, Num, Where, indices, le, matrices, matrix, recurrence, scalars, vectors
from isoform.derivations.layer.declare import layer
from isoform.derivations.layer.folding import folded
from isoform.derivations.layer.functions import exp, larger, sigmoid, softplus, tanh
from isoform.derivations.layer.steps import NotOneToken
from isoform.derivations.layer.torch_code import torch_code
from isoform.derivations.layer.torch_terms import CannotWrite, Writer
from isoform.derivations.mamba.operator import ZOH_DECLARATION
from isoform.impl.mamba import selective
from isoform.properties.running import run_law

from .declarations import COMBA, EXAMPLES, GRU, HGRN2, KDA, LONGHORN, MLSTM, SISO, TITANS, TWO_STEPS, Example
from .generated import LAWS, SHORT, forms, module, operator, source
from .test_odd_layers import ODD

operator = cache(operator)
d_k, d_v, n = indices("d_k d_v n")
(t,) = indices("t")
PARALLEL = {
    "kda": "chunkwise",
    "comba": "chunkwise",
    "longhorn": "chunkwise",
    "two-steps": "parallel_scan",
    "titans": "parallel_scan",
    "mlstm": "parallel_scan",
    "lru": "parallel_scan",
    "gru": None,
    "hgrn2": "parallel_scan",
    "one-channel": "parallel_scan",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.declaration.operator)
def test_every_law_holds(example):
    found = forms(example)
    assert [f.name for f in found] == ["recurrent", *filter(None, [PARALLEL[example.declaration.operator]])]
    applied = 0
    for law in SHORT:
        for form in found:
            result = run_law(law, operator(example), form, examples=0, corners=2, minimise=False)
            assert result.verdict in ("holds", "not-applicable"), f"{form.name}: {law.name}: {result.detail}"
            applied += result.verdict == "holds"
    assert applied >= 15 * len(found)


@pytest.mark.deep
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.declaration.operator)
def test_every_law_holds_on_many_cases(example):
    for law in LAWS.values():
        for form in forms(example):
            result = run_law(law, operator(example), form, examples=100, minimise=False)
            assert result.verdict in ("holds", "not-applicable"), f"{form.name}: {law.name}: {result.detail}"


@pytest.mark.parametrize(
    "name", ["turned round at every token", "halved at every token", "momentum of a column", "gates by their logarithms"]
)
def test_forms_of_layers_that_nobody_thought_of(name):
    odd = Example(layer("odd", **ODD[name][1], source="none"))
    found = forms(odd)
    assert len(found) == 2
    for form in found:
        for law in (ORACLE, STATE, GRADIENT):
            assert run_law(LAWS[law], operator(odd), form, examples=1, corners=2, minimise=False).verdict == "holds"


def test_zero_order_hold_is_written_with_a_matrix_exponential():
    found = module(torch_code(ZOH_DECLARATION))
    given = {"u": (2, 3, 1), "delta": (2, 3, 1), "A": (1, 4), "B": (2, 3, 1, 4), "C": (2, 3, 1, 4), "D": (1,)}
    given = {n: torch.rand(size, dtype=torch.float64) for n, size in given.items()}
    (one, last), (other, _) = (form(**given, output_final_state=True) for form in found.FORMS["selective-scan-zoh"])
    assert torch.allclose(one, other)
    axes = {"u": (0, 2, 1), "delta": (0, 2, 1), "B": (0, 2, 3, 1), "C": (0, 2, 3, 1)}
    own = {n: x.permute(axes[n]) if n in axes else x for n, x in given.items()}
    known, state = selective.recurrent(**own, return_last_state=True, discretization="zoh")
    assert torch.allclose(one, known.movedim(1, 2)) and torch.allclose(last, state)


ORACLE, STATE, SPLIT, STEP, GRADIENT = (
    "form-equals-oracle", "state-equals-oracle", "split-and-resume", "step-equals-whole", "gradient-of-inputs",
)  # fmt: skip
KEPT = "S * a.mT @ (_eye(S.shape[-1], S) - beta * k @ k.mT)"
EDITS = [
    (KDA, "recurrent", ORACLE, KEPT, "S @ (_eye(S.shape[-1], S) - beta * k @ k.mT) * a.mT"),
    (KDA, "recurrent", ORACLE, KEPT, "(S * a.mT - S @ (beta * k @ k.mT))"),
    (KDA, "recurrent", ORACLE, "- beta * k @ k.mT)", "+ beta * k @ k.mT)"),
    (KDA, "recurrent", ORACLE, "_read(S[:, 1:], q)", "_read(S[:, :-1], q)"),
    (KDA, "recurrent", STATE, "_leave(S[:, -1])", "_leave(S[:, -2:][:, 0])"),
    (KDA, "recurrent", SPLIT, "(state.to(dtype).mT,)", "(0 * state.to(dtype).mT,)"),
    (KDA, "recurrent", STEP, "S = _update(S, k, v, a, beta)", "S = _update(0 * S, k, v, a, beta)"),
    (KDA, "recurrent", GRADIENT, ".exp().unsqueeze(-1)", ".exp().detach().unsqueeze(-1)"),
    (KDA, "recurrent", STATE, "dtype = accumulator(q, k, v, g, beta, state)", "dtype = q.dtype"),
    (KDA, "chunkwise", ORACLE, "a, b = ", "b, a = "),
    (KDA, "chunkwise", ORACLE, "torch.broadcast_to(g, keys.shape)", "torch.broadcast_to(g.roll(1, 1), keys.shape)"),
    (KDA, "chunkwise", STATE, "initial_state=initial_state,", "initial_state=None,"),
    (COMBA, "recurrent", ORACLE, "beta * (S @ k - v)", "beta * (gamma * S @ k - v)"),
    (COMBA, "chunkwise", ORACLE, "(-beta * k).squeeze(-1)", "(-g.exp()[..., None, None] * beta * k).squeeze(-1)"),
    (LONGHORN, "chunkwise", ORACLE, "/ (1 + (torch.sigmoid(b)) * (k.mT @ k))", "/ (1 + torch.sigmoid(b))"),
    (HGRN2, "parallel_scan", ORACLE, "_scanned(f.mT, ", "_scanned(f.mT.roll(-1, 1), "),
    (HGRN2, "parallel_scan", SPLIT, "states, _ = scan(decay, write, state)", "states, _ = scan(decay, write, 0 * state)"),
    (MLSTM, "recurrent", ORACLE, ".clamp(min=1)", ""),
    (MLSTM, "recurrent", ORACLE, "torch.abs(n.mT @ q)", "(n.mT @ q)"),
    (MLSTM, "parallel_scan", ORACLE, "n = _scanned(f, i * k, n)", "n = _scanned(f, k, n)"),
    (TWO_STEPS, "parallel_scan", ORACLE, "k.mT @ (_eye(S.shape[-1], S) - eta * l @ l.mT) + eta", "k.mT + eta"),
    (TITANS, "recurrent", ORACLE, "eta * M_N[..., k.shape[-2] :]", "eta * M_N[..., : k.shape[-2]]"),
    (SISO, "parallel_scan", ORACLE, "_by_matrices(A,", "_by_matrices(A.mT,"),
    (SISO, "recurrent", ORACLE, "+ D * u", "+ D"),
    (GRU, "recurrent", ORACLE, "torch.sigmoid(-(W_z @ u + U_z @ h))", "torch.sigmoid(W_z @ u + U_z @ h)"),
    (GRU, "recurrent", GRADIENT, "(U_n @ h)", "(U_n @ h.detach())"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("example", "name", "law", "old", "new"), [pytest.param(*e, id=f"{e[0].declaration.operator}-{e[1]}-{e[4]}") for e in EDITS]
)
def test_an_edit_is_rejected(example, name, law, old, new):
    whole = forms(example)
    right = next(f for f in whole if f.name == name)
    wrong = next(f for f in forms(example, (old, new)) if f.name == name)
    verdicts = [run_law(LAWS[law], operator(example), f, examples=4, corners=6, minimise=False).verdict for f in (right, wrong)]
    assert verdicts == ["holds", "violated"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.declaration.operator)
def test_the_source_is_a_module_that_imports_torch_and_the_forms_alone(example):
    text = source(example)
    tree = ast.parse(text)
    roots = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    roots |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert all(r in ("__future__", "torch", "jaxtyping") or r.startswith("isoform.impl") for r in roots)
    for f in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
        assert ast.get_docstring(f)
    assert " ".join(example.declaration.source.split()) in " ".join(ast.get_docstring(tree).split())
    assert max(map(len, text.splitlines())) <= 140


def test_mistakes_of_a_caller_are_one_sentence():
    found = module(source(KDA))
    q, k, v = (torch.zeros(1, 3, 2, size) for size in (4, 4, 5))
    beta = torch.zeros(1, 3, 2)
    with pytest.raises(ValueError, match=r"kda\.recurrent: g has shape \(1, 3, 2, 5\); the other arguments need"):
        found.recurrent(q, k, v, torch.zeros(1, 3, 2, 5), beta)
    with pytest.raises(ValueError, match=r"chunkwise: initial_state has shape \(1, 2, 5, 4\); .* need \(b=1, h=2, k=4, v=5\)"):
        found.chunkwise(q, k, v, torch.zeros_like(k), beta, initial_state=torch.zeros(1, 2, 5, 4))
    with pytest.raises(ValueError, match="step: state has shape"):
        found.step(q[:, 0], k[:, 0], v[:, 0], k[:, 0], beta[:, 0], state=torch.zeros(1, 2, 5, 4))


def test_no_token_hands_the_state_back():
    found = module(source(MLSTM))
    given = {name: torch.zeros(2, 0, 3, *size) for name, size in {"q": (4,), "k": (4,), "v": (5,), "f": (), "i": ()}.items()}
    start = torch.randn(2, 3, 24)
    for form in found.FORMS["mlstm"]:
        o, state = form(**given, initial_state=start, output_final_state=True)
        assert o.shape == (2, 0, 3, 5)
        assert torch.equal(state, start)
        assert form(**given)[1] is None


x, y = vectors("x", n), vectors("y", n)
W, b = matrices("W", n, n), scalars("b")


@pytest.mark.parametrize(
    ("term", "written"),
    [
        (x[t] - 2 * y[t], "x - 2 * y"),
        (-(x[t] + y[t]), "-(x + y)"),
        (b[t] * (x[t].T * y[t]) * x[t], "(b * (x.mT @ y)) * x"),
        (x[t] / (1 + b[t]), "x / (1 + b)"),
        (sigmoid(x[t]) + tanh(y[t]), "torch.sigmoid(x) + torch.tanh(y)"),
        (1 / (1 + Exp(-b[t])), "torch.sigmoid(b)"),
        (softplus(b[t]), "torch.nn.functional.softplus(b, threshold=60.0)"),
        (W[t] * (Eye(n) - x[t] * x[t].T), "W @ (_eye(x.shape[-2], x) - x @ x.mT)"),
        (Inverse(Eye(n) + W[t]) * x[t], "torch.linalg.inv(_eye(x.shape[-2], x) + W) @ x"),
        (Num(1) / Num(3) * x[t], "(1 / 3) * x"),
        (sigmoid(1) * x[t], "torch.sigmoid(x.new_full((1, 1), 1)) * x"),
        (larger(1, 2) * exp(-1) * x[t], "(x.new_full((1, 1), 1).clamp(min=2) * x.new_full((1, 1), -1).exp()) * x"),
        (larger(b[t], Num(1)), "b.clamp(min=1)"),
    ],
)
def test_terms(term, written):
    writer = Writer({"x": "x", "y": "y", "W": "W", "b": "b"}, {n: "x.shape[-2]"}, "x")
    text = writer.text(term)
    assert text == written
    values = {"x": torch.randn(3, 1), "y": torch.randn(3, 1), "W": torch.randn(3, 3), "b": torch.randn(1, 1), "torch": torch}
    found = eval(text, values | {"_eye": lambda size, like: torch.eye(size)})
    assert found.shape == tuple(3 if e == n else 1 for e in term.shape)


def one(update):
    return layer("odd", inputs={"x": n}, state={"h": n}, update=update, read=lambda h: h, source="nobody")


def test_an_update_may_use_no_input():
    made = layer("odd", inputs={"x": n}, state={"h": n}, update=lambda h: 2 * h, read=lambda h, x: h + x, source="nobody")
    (recurrent,) = module(torch_code(made)).FORMS["odd"]
    o, state = recurrent(torch.ones(1, 3, 1, 2), torch.ones(1, 1, 2), output_final_state=True)
    assert o[0, :, 0, 0].tolist() == [3, 5, 9] and state[0, 0].tolist() == [8, 8]


def test_what_cannot_be_written_is_said():
    with pytest.raises(CannotWrite, match="Where has no torch expression"):
        torch_code(one(lambda h, x: h + Where(le(n, 3), x, 2 * x)))
    H0 = matrix("h0", n, 1)
    early = recurrence("h", H0, lambda t, h: h + x[t - 1])
    with pytest.raises(NotOneToken, match="is another token's input"):
        torch_code(Declaration("odd", {"x": x}, early[t], t, early, H0))
    on = recurrence("h", H0, lambda t, h: h + x[t])
    timed = recurrence("h", H0, lambda t, h: h + Ind(t) * x[t])
    with pytest.raises(NotOneToken, match="depends on the time t itself"):
        torch_code(Declaration("odd", {"x": x}, timed[t], t, timed, H0))
    with pytest.raises(ValueError, match="the size n of a state is that of no input"):
        torch_code(layer("odd", inputs={"x": 1}, state={"h": n}, update=lambda h, x: x * h, read=lambda h: h.T * h, source="nobody"))
    with pytest.raises(ValueError, match="'lambda' cannot name an argument"):
        torch_code(Declaration("odd", {"lambda": x}, on[t], t, on, H0))


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("a = b + c", ["a = b + c"]),
        ("return first + second - third", ["return (", "    first", "    + second", "    - third", ")"]),
        ("x = call(first, second)", ["x = call(", "    first, second", ")"]),
        ("x = call(first_one, second, third_one)", ["x = call(", "    first_one,", "    second,", "    third_one,", ")"]),
        ("x = (first + second).mT @ y", ["x = (", "    first + second", ").mT @ y"]),
        ("x = (one(first, second)).sum(-2, True)", ["x = (", "    one(", "        first,", "        second,", "    )", ").sum(-2, True)"]),
        ("    call(first, second, q)", ["    call(", "        first,", "        second,", "        q,", "    )"]),
    ],
)
def test_long_lines_are_broken_where_python_lets_them(line, lines):
    found = folded(line, 20)
    assert found.splitlines() == lines
    assert ast.dump(ast.parse(found.strip())) == ast.dump(ast.parse(line.strip()))
