"""What tells failing cases from others is found and counted, and nothing is told where nothing can be."""

import pytest

from isoform.checking.containment import Tried
from isoform.checking.diagnosis import diagnose, separations
from isoform.checking.report import LawReport

SIZES = {"b": 1, "t": 5, "h": 1, "groups": 1, "k": 3, "v": 3, "chunk": 64}


def case(*flags, dtype="float32", scale="small", **sizes):
    return {"operator": "x", "sizes": [[n, s] for n, s in (SIZES | sizes).items()], "dtype": dtype, "scale": scale, "flags": list(flags)}


def tried(fails, cases, what="output"):
    return tuple(Tried(c, what, not fails(c)) for c in cases)


def steps(c):
    return dict(c["sizes"])["t"]


LENGTHS = [case(t=n) for n in (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65)]


@pytest.mark.parametrize(
    ("says", "fails", "cases"),
    [
        ("T mod 16 ≠ 0", lambda c: steps(c) % 16, LENGTHS),
        ("T mod 8 = 0", lambda c: not steps(c) % 8, [*LENGTHS, case(t=24), case(t=4)]),
        ("T = 0", lambda c: steps(c) == 0, LENGTHS),
        ("T = 1", lambda c: steps(c) == 1, LENGTHS),
        ("T > 16", lambda c: steps(c) > 16, LENGTHS),
        ("T < 16", lambda c: steps(c) < 16, LENGTHS),
        ("an initial state is given", lambda c: "start" in c["flags"], [*LENGTHS, case("start"), case("start", t=9)]),
        ("inputs have 16 bits", lambda c: "16" in c["dtype"], [*LENGTHS, case(dtype="bfloat16"), case(dtype="float16")]),
        ("K ≠ V", lambda c: dict(c["sizes"])["k"] != dict(c["sizes"])["v"], [*LENGTHS, case(k=2), case(v=2)]),
        ("heads share keys", lambda c: dict(c["sizes"])["groups"] > 1, [*LENGTHS, case(groups=2), case(groups=3, t=8)]),
        ("the case is long-keys", lambda c: "long-keys" in c["flags"], [*LENGTHS, case("long-keys")]),
    ],
)
def test_a_condition_is_found_and_counted(says, fails, cases):
    found = next(s for s in separations(tried(fails, cases)) if s.says == says)
    wrong = sum(bool(fails(c)) for c in cases)
    assert (found.failed, found.inside, found.outside) == (wrong, wrong, len(cases) - wrong)


def test_two_conditions_are_joined_where_one_does_not_do():
    cases = [case(*flags, t=n) for n in range(9) for flags in ((), ("start",))]
    (found,) = separations(tried(lambda c: "start" in c["flags"] and steps(c) % 4, cases))
    assert found.says == "an initial state is given and T mod 4 ≠ 0"
    assert (found.failed, found.inside, found.outside) == (6, 6, 12)


def test_what_was_compared_after_so_many_tokens_is_a_case_of_so_many():
    given = tuple(Tried(case(t=40), f"state after {n} tokens", n % 16 == 0) for n in range(41))
    assert separations(given)[0].says == "T mod 16 ≠ 0"


def test_comparisons_of_another_kind_say_nothing():
    given = (*tried(lambda c: True, [case()], "final state"), *tried(lambda c: False, LENGTHS, "output"))
    assert [(s.says, s.failed, s.inside) for s in separations(given)] == [("", 1, 1)]


def test_failures_without_a_pattern_are_given_none_that_does_not_hold():
    cases = [case(t=n, k=k) for n in range(1, 8) for k in (1, 2, 3)]
    odd = {(1, 1), (2, 3), (4, 2), (7, 3)}
    for s in separations(tried(lambda c: (steps(c), dict(c["sizes"])["k"]) in odd, cases)):
        assert s.failed == 4 and s.inside > 4 and s.inside + s.outside == len(cases)


def test_what_is_so_in_every_case_is_no_condition():
    cases = [case(t=n, k=4) for n in range(1, 41)]
    given = tuple(Tried(c, "output", n == 7) for n, c in enumerate(cases))
    for s in separations(given):
        assert s.outside > 0 or s.says == ""


def law(name, verdict, given=()):
    return LawReport(name, "", verdict, tried=given)


def test_laws_that_fail_under_one_condition_are_told_together():
    given = tried(lambda c: steps(c) % 16, LENGTHS)
    laws = [law("form-equals-oracle", "holds"), law("state-equals-oracle", "violated", given), law("layout", "violated", given)]
    second, first = diagnose(laws)
    assert first.says == "state-equals-oracle, layout fail only where T mod 16 ≠ 0: 20 of 20 such cases, 0 of 10 others"
    assert first.laws == ("state-equals-oracle", "layout")
    assert second.says == "the outputs are right, the state that is handed out is not"


def test_the_backward_pass_is_accused_only_beside_a_right_forward_pass():
    wrong = law("gradient-of-inputs", "violated", tried(lambda c: True, [case()]))
    right = law("form-equals-oracle", "holds")
    accused = "the forward pass is right, the backward pass is not"
    assert accused in [d.says for d in diagnose([right, law("state-equals-oracle", "holds"), wrong])]
    assert accused not in [d.says for d in diagnose([right, law("state-equals-oracle", "violated", tried(lambda c: 1, [case()])), wrong])]
    assert accused not in [d.says for d in diagnose([law("form-equals-oracle", "unverified"), wrong])]


def test_nothing_is_said_of_a_kernel_that_holds():
    assert diagnose([law("form-equals-oracle", "holds", tried(lambda c: False, LENGTHS))]) == ()


@pytest.mark.parametrize(
    ("failing", "told"),
    [("the first 1 tokens, later ones nan", True), ("the first 1 tokens, later ones other", False), ("the first 1 tokens alone", False)],
)
def test_nan_that_reaches_what_does_not_see_it_is_told_from_numbers_that_do(failing, told):
    right = LawReport("form-equals-oracle", "", "holds")
    both = tuple(Tried(case(t=n), what, what != failing) for n in (2, 3) for what in ("the first 1 tokens, later ones inf", failing))
    wrong = LawReport("prefix-invariance", "", "violated", tried=both)
    assert any("no nonfinite" in d.says and d.laws == ("prefix-invariance",) for d in diagnose((right, wrong))) is told


@pytest.mark.parametrize(("flags", "told"), [(("hidden",), True), ((), False)])
def test_outputs_that_fail_beside_nan_alone_are_told_from_others(flags, told):
    both = (Tried(case(*flags, t=2), "output", False), Tried(case(t=3), "output", True))
    wrong = LawReport("form-equals-oracle", "", "violated", tried=both)
    assert any("no nonfinite" in d.says for d in diagnose((wrong,))) is told
