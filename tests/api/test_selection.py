"""Names that the user gives, and exit codes."""

import pytest

from isoform.exits import Exit, worst
from isoform.selection import UnknownName, column, select

IDS = ("delta-rule/unrolled", "delta-rule/overwrite", "state-space/solution")


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ((), IDS),
        (("delta-rule",), IDS[:2]),
        (("state-space/solution", "delta-rule/unrolled"), (IDS[0], IDS[2])),
        (("delta-rule", "delta-rule/unrolled"), IDS[:2]),
    ],
)
def test_select(names, meant):
    assert select(names, IDS) == meant


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("delta-rule/unroled", "did you mean 'delta-rule/unrolled'?"),
        ("state_space", "did you mean 'state-space'?"),
        ("zzz", "`isoform list` shows what there is"),
    ],
)
def test_an_unknown_name_gets_advice(name, advice):
    with pytest.raises(UnknownName, match=f"no claim or architecture '{name}'") as caught:
        select((name,), IDS)
    assert advice in str(caught.value)


def test_one_unknown_name_among_known_ones_is_refused():
    with pytest.raises(UnknownName):
        select(("delta-rule", "zzz"), IDS)


def test_an_architecture_is_a_file():
    assert column("state-space/solution") == "state_space"


@pytest.mark.parametrize(
    ("codes", "winner"),
    [
        ((), Exit.HELD),
        ((Exit.UNVERIFIED, Exit.VIOLATED), Exit.VIOLATED),
        ((Exit.UNVERIFIED, Exit.FAILED), Exit.FAILED),
        ((Exit.FAILED, Exit.VIOLATED), Exit.VIOLATED),
        ((Exit.UNVERIFIED,), Exit.UNVERIFIED),
    ],
)
def test_violated_wins(codes, winner):
    assert worst(*codes) is winner


def test_the_codes_are_the_promised_numbers():
    assert {code.name: int(code) for code in Exit} == {
        "HELD": 0,
        "VIOLATED": 1,
        "USAGE": 2,
        "UNVERIFIED": 3,
        "FAILED": 4,
        "INTERRUPTED": 130,
    }
