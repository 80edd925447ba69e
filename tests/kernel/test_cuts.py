"""Cuts 0 = b_0 <= b_1 <= ...: each false statement about them is refused beside a true sibling, and refuted with its cuts."""

from __future__ import annotations

from random import Random

import pytest
from sympy import Expr, Integer, Symbol

from isoform.derivations.evaluate import certify, recheck, refute
from isoform.derivations.evaluate.drawing import Limits, shape_of
from isoform.derivations.kernel.affine import NotAffine, Place, affine, implied, name, read, write
from isoform.derivations.kernel.counterexample import refuted_by
from isoform.derivations.kernel.fingerprint import canonical
from isoform.derivations.kernel.formulas import And, Assumption, Equation, ForAll, Statement
from isoform.derivations.kernel.printing import latex, text
from isoform.derivations.kernel.proof import Unproved
from isoform.derivations.kernel.prove import prove
from isoform.derivations.kernel.scripts import (
    Direct,
    Each,
    ForEach,
    Given,
    Hypothesis,
    Induction,
    Lemma,
    Part,
    Rowwise,
    Script,
)
from isoform.derivations.kernel.terms import (
    Cond,
    Cut,
    Ind,
    Index,
    Num,
    Prod,
    Recurrence,
    Stack,
    Sum,
    Term,
    Where,
    cuts,
    equal,
    indicator,
    indices,
    le,
    lt,
    matrices,
    recurrence,
    scalar,
    scalars,
    substitute,
)

from .attacks import ANYWHERE, REFUSALS, check, prover

d, i, j, k, m, n, t = indices("d i j k m n t")
b, c = cuts("b"), cuts("c")
x, y, g = scalars("x"), scalars("y"), scalar("g")
A = matrices("A", d, d)
from_0 = le(0, i)


def total(first: Index, last: Index) -> Term:
    return Sum(x[j], j, first, last)


def product(first: Index, last: Index) -> Term:
    return Prod(A[j], j, first, last)


def truth(condition: Cond) -> Equation:
    return Equation(indicator(condition), 1)


def under(condition: Cond, left: Term, right: Term) -> Equation:
    return Equation(Where(condition, left, Num(0)), Where(condition, right, Num(0)))


# decided by the normal form: (false, its conditions, true, its conditions) ---------------------------

DIRECT: dict[str, tuple[Equation, Cond, Equation, Cond]] = {
    "cuts in the wrong order": (
        Equation(total(1, b[i + 1]) + total(b[i + 1] + 1, b[i]), total(1, b[i])),
        from_0,
        Equation(total(1, b[i]) + total(b[i] + 1, b[i + 1]), total(1, b[i + 1])),
        from_0,
    ),
    "no chunk is empty": (truth(lt(b[i], b[i + 1])), from_0, truth(le(b[i], b[i + 1])), from_0),
    "the first chunk is empty": (Equation(total(1, b[1]), 0), ANYWHERE, Equation(total(1, b[0]) + x[1], x[1]), ANYWHERE),
    "the first chunk is not empty": (truth(le(1, b[1])), ANYWHERE, truth(le(0, b[1])), ANYWHERE),
    "later places, smaller cuts": (truth(le(b[j], b[i])), from_0 & le(i, j), truth(le(b[i], b[j])), from_0 & le(i, j)),
    "places in no order": (truth(le(b[i], b[j])), from_0 & le(0, j), truth(le(b[i], b[i + j])), from_0 & le(0, j)),
    "twice the place": (truth(le(b[2 * i], b[i])), from_0, truth(le(b[i], b[2 * i])), from_0),
    "a cut is its place": (truth(le(b[i], i)), from_0, truth(le(b[i], b[i] + i)), from_0),
    "cuts add up": (truth(equal(b[i + j], b[i] + b[j])), from_0 & le(0, j), truth(equal(b[i + j], b[j + i])), from_0 & le(0, j)),
    "cuts of two families": (truth(le(b[i], c[i + 1])), from_0, truth(le(b[i] + c[i], b[i + 1] + c[i + 1])), from_0),
    "a chunk between two families": (
        Equation(total(1, b[i]) + total(b[i] + 1, c[i + 1]), total(1, c[i + 1])),
        from_0,
        Equation(total(1, b[i]) + total(b[i] + 1, b[i + 1]) + total(1, c[i]), total(1, b[i + 1]) + total(1, c[i])),
        from_0,
    ),
    "one more token than a chunk has": (
        Equation(Sum(Num(1), j, b[i] + 1, b[i + 1]), Ind(b[i + 1] - b[i] + 1)),
        from_0,
        Equation(Sum(Num(1), j, b[i] + 1, b[i + 1]), Ind(b[i + 1] - b[i])),
        from_0,
    ),
    "the last token of an empty chunk": (
        Equation(total(b[i] + 1, b[i + 1]), total(b[i] + 1, b[i + 1] - 1) + x[b[i + 1]]),
        from_0,
        Equation(total(b[i] + 1, b[i + 1] + 1), total(b[i] + 1, b[i + 1]) + x[b[i + 1] + 1]),
        from_0,
    ),
    "equal cuts have equal places": (
        under(equal(b[i], b[j]), x[i], x[j]),
        from_0 & le(0, j),
        under(equal(i, j), x[b[i]], x[b[j]]),
        from_0 & le(0, j),
    ),
    "a cut known by another index": (
        under(equal(t, b[i]), x[t], x[i]),
        from_0,
        under(equal(t, b[i]), x[t], x[b[i]]),
        from_0,
    ),
    "products of two chunks, the later one first": (
        Equation(product(b[i] + 1, b[i + 1]) * product(1, b[i]), product(1, b[i + 1])),
        from_0,
        Equation(product(1, b[i]) * product(b[i] + 1, b[i + 1]), product(1, b[i + 1])),
        from_0,
    ),
    "the power of the next chunk": (
        Equation(g ** (b[i + 1] - b[i]) * g ** b[i], g ** b[i]),
        from_0,
        Equation(g ** (b[i + 1] - b[i]) * g ** b[i], g ** b[i + 1]),
        from_0,
    ),
    "shifted by one": (Equation(x[b[i + 1]] + y[i], y[i] + x[b[i] + 1]), from_0, Equation(x[b[i + 1]] + y[i], y[i] + x[b[1 + i]]), from_0),
}


@pytest.mark.parametrize("attack", DIRECT)
def test_a_false_statement_is_refused_and_refuted(attack: str) -> None:
    false, where, true, there = DIRECT[attack]
    check(Statement(false, where), Statement(true, there), Direct())
    assert certify(Statement(true, there), draws=8).holds is True
    found = refute(Statement(false, where))
    assert found is not None and recheck(Statement(false, where), found)
    assert refuted_by(Statement(false, where), dict(found.sizes), dict(found.values)) == ""


# a cut at a negative place may be any integer: the same without its condition -----------------------

UNCONDITIONED: dict[str, tuple[Equation, Cond]] = {
    "a cut is not negative": (truth(le(0, b[i])), from_0),
    "neighbours are in order": (truth(le(b[i], b[i + 1])), from_0),
    "the place before is a place": (truth(le(b[i - 1], b[i])), le(1, i)),
    "in order of places": (truth(le(b[i], b[j])), from_0 & le(i, j)),
    "chunks join": (Equation(total(1, b[i]) + total(b[i] + 1, b[i + 1]), total(1, b[i + 1])), from_0),
    "powers join": (Equation(g ** (b[i + 1] - b[i]) * g ** b[i], g ** b[i + 1]), from_0),
}


@pytest.mark.parametrize("attack", UNCONDITIONED)
def test_order_is_known_from_place_0_on(attack: str) -> None:
    f, where = UNCONDITIONED[attack]
    weaker = le(0, i + 1) if where != le(1, i) else from_0
    check(Statement(f, weaker & le(i, j) if len(where.args) == 2 else weaker), Statement(f, where), Direct())


# the chunk loop -------------------------------------------------------------------------------------

H = recurrence("H", scalar("h"), lambda t, H: y[t] * H + x[t])


def since(start: Term, first: Index, last: Index) -> Term:
    fading = Prod(y[k], k, first, last) * start
    return fading + Sum(Prod(y[k], k, j + 1, last) * x[j], j, first, last)


def loop(first: Index = 1, last: Index = 0, place: Index = 0) -> Recurrence:
    return recurrence("S", scalar("h"), lambda i, S: since(S, b[i - 1 + place] + first, b[i + place] + last))


S = loop()
unrolled = Statement(Equation(H[t], since(scalar("h"), 1, t)), le(0, t))
by_chunks = Induction(i, Direct(), Direct((Hypothesis(), Lemma("unrolled"))))
LOOPS: dict[str, tuple[Equation, Script]] = {
    "the next cut": (Equation(S[i], H[b[i + 1]]), by_chunks),
    "the place for the cut": (Equation(S[i], H[i]), by_chunks),
    "chunks that overlap": (Equation(loop(first=0)[i], H[b[i]]), by_chunks),
    "chunks with a gap": (Equation(loop(first=2)[i], H[b[i]]), by_chunks),
    "chunks that end one token late": (Equation(loop(last=1)[i], H[b[i]]), by_chunks),
    "the chunk after": (Equation(loop(place=1)[i], H[b[i]]), by_chunks),
}


def test_the_unrolled_sum_is_a_lemma() -> None:
    assert prover({})(unrolled, Induction(t)).scope == "all sizes"


@pytest.mark.parametrize("attack", LOOPS)
def test_induction_over_chunks(attack: str) -> None:
    attempt = prover({"unrolled": unrolled})
    assert attempt(Statement(Equation(S[i], H[b[i]]), from_0), by_chunks).scope == "all sizes"
    false, script = LOOPS[attack]
    with pytest.raises(REFUSALS):
        attempt(Statement(false, from_0), script)
    found = refute(Statement(false, from_0))
    assert found is not None and recheck(Statement(false, from_0), found)
    assert refuted_by(Statement(false, from_0), dict(found.sizes), dict(found.values)) == ""


def test_the_hypothesis_is_about_its_own_cut() -> None:
    def plain(place: Index) -> Term:
        return recurrence("P", scalar("p"), lambda i, P: P + total(b[i - 1 + place] + 1, b[i + place]))[i]

    def whole(place: Index) -> Term:
        return scalar("p") + total(1, b[i + place])

    true = Statement(Equation(plain(0), whole(0)), from_0)
    check(Statement(Equation(plain(1), whole(0)), from_0), true, Induction(i))
    check(Statement(Equation(plain(0), whole(-1)), from_0), true, Induction(i))


def test_a_cut_stands_still_while_another_index_moves() -> None:
    where = from_0 & le(b[i], t)
    moving = recurrence("R", scalar("r"), lambda t, R: R + x[t], start=b[i])
    script = Induction(t, start=b[i])
    check(
        Statement(Equation(moving[t], scalar("r") + total(b[i], t)), where),
        Statement(Equation(moving[t], scalar("r") + total(b[i] + 1, t)), where),
        script,
    )
    with pytest.raises(Unproved):  # the start would move with the index
        prove(Statement(Equation(x[i] + y[i], y[i] + x[i]), le(b[i], i)), Induction(i, start=b[i]), lambda id: pytest.fail(id))


def test_the_start_of_an_induction_is_a_condition() -> None:
    steps = recurrence("R", scalar("r"), lambda t, R: R + x[t])
    f = Equation(steps[t], scalar("r") + total(1, t))
    check(Statement(f, le(b[i], t)), Statement(f, le(0, t)), Induction(t))


# bound indices --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        Equation(Sum(x[b[k]], k, 0, n + 1), Sum(x[b[k]], k, 0, n) + x[b[n + 1]]),
        Equation(Sum(x[b[k]], k, 0, n), Sum(x[k], k, 0, b[n])),
        Equation(Sum(total(1, b[k]), k, 0, n), Sum(Sum(x[j], j, 1, b[k]), k, 0, n) + x[0] - x[0]),
        Equation(Prod(y[b[k] + 1], k, 0, n) * y[0], y[0] * Prod(y[k + 1], k, 0, b[n])),
        Equation(Sum(Where(le(k, b[k]), x[k], Num(0)), k, 0, n), Sum(x[k], k, 0, n)),
        Equation(Sum(S[k], k, 0, n), Sum(H[k], k, 0, n)),
    ],
    ids=str,
)
def test_a_bound_index_is_never_read_in_the_place_of_a_cut(f: Equation) -> None:
    rule = Statement(Equation(S[k], H[b[k]]), le(0, k))
    with pytest.raises(REFUSALS):
        prover({"states": rule})(Statement(f, le(0, n)), Direct((Lemma("states"),)))


def test_a_lemma_with_a_cut_is_used_of_free_indices() -> None:
    rule = Statement(Equation(S[k], H[b[k]]), le(0, k))
    attempt = prover({"states": rule})
    by = Direct((Lemma("states"),))
    assert attempt(Statement(Equation(S[i + 1] + S[i], H[b[i]] + H[b[i + 1]]), from_0), by).lemmas == {"states"}
    for false in (Equation(S[i + 1], H[b[i] + 1]), Equation(S[i], H[b[k]])):
        with pytest.raises(REFUSALS):
            attempt(Statement(false, from_0 & le(0, k)), by)
    with pytest.raises(REFUSALS):  # the lemma's condition is not known
        attempt(Statement(Equation(S[i + 1], H[b[i + 1]]), le(-2, i)), by)


def test_substitution_captures_nothing() -> None:
    put = substitute(Sum(x[i] * y[b[j]], i, 1, n), {j: i})
    assert canonical(put) == canonical(Sum(x[m] * y[b[i]], m, 1, n))
    assert canonical(put) != canonical(Sum(x[m] * y[b[m]], m, 1, n))
    assert substitute(b[i] + i, {i: i + 1}) == b[i + 1] + i + 1
    assert substitute(b[i] - b[j], {i: j, j: i}) == b[j] - b[i]
    assert substitute(b[i] + t, {i: Integer(0)}) == t


# quantified conditions ------------------------------------------------------------------------------

zeros = Assumption("zeros", ForAll(Equation(x[b[k]], 0), k, 0, n), solve={x[t]: Num(0)})


def test_what_is_assumed_of_all_cuts() -> None:
    by = Direct((Given("zeros"),))
    at_i = Direct((Given("zeros", {k: i}),))
    inside = from_0 & le(i, n)
    check(Statement(Equation(x[i], 0), inside, (zeros,)), Statement(Equation(x[b[i]], 0), inside, (zeros,)), at_i)
    check(Statement(Equation(x[b[i]], 0), from_0, (zeros,)), Statement(Equation(x[b[i]], 0), inside, (zeros,)), at_i)
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(x[b[n + 1]], 0), le(0, n), (zeros,)), by)


def test_an_assumption_of_a_lemma_at_values_of_its_indices() -> None:
    one = Assumption("one", Equation(x[b[i]], 0))
    lemma = Statement(Equation(x[b[i]] * y[0], 0), ANYWHERE, (one,))
    attempt = prover({"lemma": lemma})

    def by(value: Expr) -> Script:
        return Direct((Lemma("lemma", given=(Given("zeros", {k: value}),)),))

    goal = Equation(x[b[i]] * y[0], 0)
    assert attempt(Statement(goal, from_0 & le(i, n), (zeros,)), by(i)).used == {"zeros"}
    for where, value in ((from_0, i), (le(i, n), i), (from_0 & le(i, n) & le(1, i), i - 1)):
        with pytest.raises(REFUSALS):  # outside the range, or another instance
            attempt(Statement(goal, where, (zeros,)), by(value))
    with pytest.raises(REFUSALS):
        attempt(Statement(goal, from_0 & le(i, n), (zeros,)), Direct((Lemma("lemma", given=(Given("zeros", {j: i}),)),)))


def test_parts_are_kept_for_a_new_index_alone() -> None:
    first = Equation(S[i], H[b[i]])
    inside = ForAll(Equation(H[t] + S[i], H[b[i]] + H[t]), t, 0, n)
    attempt = prover({"unrolled": unrolled})
    script = Each((by_chunks, ForEach(Direct((Part(1),)))))
    assert attempt(Statement(And(first, inside), from_0), script).scope == "all sizes"
    rows = Equation(Stack(S[i] * x[t], t, 1, n), Stack(H[b[i]] * x[t], t, 1, n))
    assert attempt(Statement(And(first, rows), from_0), Each((by_chunks, Rowwise(m, Direct((Part(1),)))))).scope == "all sizes"
    about_t = Statement(And(Equation(x[t] + y[t], y[t] + x[t]), inside), from_0)
    with pytest.raises(Unproved, match="already in use"):
        attempt(about_t, Each((Direct(), ForEach(Direct((Part(1),))))))


# what is no cut ---------------------------------------------------------------------------------------

HALF = Cut("b", i / 2)


@pytest.mark.parametrize(
    "at",
    [b[b[i]], b[i * i], HALF, Cut("b $", i), Cut("#b", i), Cut("bʹ", i), Symbol("b[1*i + 0]", integer=True)],
    ids=str,
)
def test_places_are_affine_and_names_plain(at: Expr) -> None:
    with pytest.raises(REFUSALS):
        prover({})(Statement(Equation(x[at] + y[i], y[i] + x[at])), Direct())


def test_cuts_and_terms_have_different_names() -> None:
    with pytest.raises(Unproved, match="those of cuts and of terms"):
        prover({})(Statement(Equation(scalars("b")[b[i]] + y[i], y[i] + scalars("b")[b[i]])), Direct())


def test_a_cut_as_an_affine_expression() -> None:
    e = read(b[i + 1] - 2 * b[i] + t)
    assert write(e) == b[i + 1] - 2 * b[i] + t
    assert e.names >= {"i", "t"} and e.placed == {"i"}
    assert e.subs({"i": affine({}, 0)}) == read(b[1] + t)
    assert e.subs({"i": name("j") + 1}) == read(b[j + 2] - 2 * b[j + 1] + t)
    assert b[0] == 0 and read(b[0] + t) == name("t")
    with pytest.raises(NotAffine):
        read(b[i]).subs({"i": read(b[j])})
    with pytest.raises(NotAffine):
        Place("b", read(c[i]))


def test_the_order_of_cuts_follows_from_that_of_places() -> None:
    here = frozenset({name("i")})
    assert implied(here, read(b[i + 3] - b[i])) and implied(here, read(b[i])) and implied(frozenset(), read(b[7] - b[2]))
    assert not implied(here, read(b[i + 3] - b[i] - 1)) and not implied(here, read(b[i] - 1))
    assert not implied(here, read(b[i - 1])) and not implied(frozenset(), read(b[-1] + 1))
    assert not implied(here, read(b[i + 1] - c[i])) and not implied(frozenset(), read(b[j] - b[i]))
    between = here | {read(t - b[i + 1] - 1)}
    assert implied(between, read(t - b[i] - 1)) and not implied(between, read(t - b[i + 2]))


# print, fingerprint, and the second engine -----------------------------------------------------------


def test_print() -> None:
    said = Statement(Equation(S[i], H[b[i + 1]]), from_0 & le(b[i], t))
    assert text(said) == "S_i = H_{b_{i+1}}\n  for 0 = b_0 ≤ b_1 ≤ …, 0 ≤ i, b_i ≤ t"
    assert r"0 = b_0 \le b_1 \le \dots" in latex(said) and "H_{b_{i+1}}" in latex(said)
    assert text(2 * b[i] - t + 1) == "2b_i−t+1"


def test_fingerprint() -> None:
    distinct = [x[b[i]], x[b[i + 1]], x[b[i] + 1], x[c[i]], x[b[j]], x[i], x[2 * b[i]], x[b[2 * i]], x[b[i] + b[j]], x[b[i + j]]]
    assert len({canonical(e) for e in distinct}) == len(distinct)
    bound = [Assumption("", ForAll(Equation(x[b[s] + i], 0), s, 0, n)).formula for s in (k, m)]
    assert canonical(bound[0]) == canonical(bound[1])


def test_draws_repeat_and_leap() -> None:
    shape = shape_of(Statement(Equation(S[i], H[b[i]]), from_0))
    drawn = [shape.draw(Random(seed), Limits(8, 2), 6) for seed in range(60)]
    ends = [[v for key, v in d.items() if isinstance(key, Cut)] for d in drawn if d]
    assert all(e == sorted(e) and e[0] >= 0 for e in ends)
    assert any(e[0] == 0 for e in ends) and any(e[0] > 1 for e in ends)
    assert any(e[1] == e[2] for e in ends) and any(e[2] - e[1] >= 6 for e in ends)


def test_a_counterexample_shows_the_cuts_that_it_needs() -> None:
    false = Statement(Equation(total(b[i] + 1, b[i + 1]), 0), le(1, i))
    found = refute(false)
    assert found is not None and str(found).startswith("b_1=0, b_2=1, i=1: ")
    assert [key for key, _ in found.sizes] == ["b[1]", "b[2]", "i"]
    sizes, values = dict(found.sizes), dict(found.values)
    assert refuted_by(false, sizes, values) == ""
    assert "not in order" in refuted_by(false, sizes | {"b[1]": 1, "b[2]": 0}, values)
    assert "not in order" in refuted_by(false, sizes | {"b[1]": -1}, values)
    assert "no value" in refuted_by(false, {key: v for key, v in sizes.items() if key != "b[2]"}, values)
