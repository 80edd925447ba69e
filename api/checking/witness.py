"""What a case in which a law does not hold shows: the case run once more, its first bad entry, and what else came out right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isoform.checking import snippet
from isoform.checking.report import Witness
from isoform.checking.snippet import Call, Log
from isoform.checking.target import Target

if TYPE_CHECKING:
    from isoform.properties.laws import Comparison, Law
    from isoform.properties.operator import Form, Operator
    from isoform.properties.strategies import Case

AXES = {
    "b": "batch",
    "t": "time",
    "h": "head",
    "hv": "head",
    "hkv": "head",
    "k": "key feature",
    "v": "feature",
    "d": "feature",
    "c": "feature",
    "m": "feature",
    "n": "state",
    "s": "key",
    "g": "group",
    "gc": "group",
    "w": "tap",
    "w-1": "tap",
}
"""Axes of the plain call in words."""
OUTPUT = {2: ("batch", "time"), 3: ("batch", "time", "feature"), 4: ("batch", "time", "head", "feature")}
"""The axes of outputs, by their number."""
ALONE = (0, 1)
"""Axes that may be missing at the front: what is compared of one sequence has no axis of the batch."""
UNSTEADY = "the same case came out right when it was run again: the kernel does not give one answer"


def examine(law: Law, operator: Operator, form: Form, case: Case, log: Log, target: Target | None) -> Witness | None:
    """Run a case up to its first comparison that fails, and say what that shows; None where there is no such one.

    ``log`` is of the kernel's calls.
    """
    from isoform.properties.operator import FormRaised
    from isoform.properties.tensors import one_thread

    try:
        with one_thread(), log.open():
            for c in law.check(operator, form, case):
                if c.worst > 1:
                    return _compared(operator, form, case, c, tuple(log.calls), target)
    except FormRaised as error:
        said = str(error)
        return Witness(as_dict(case), said, f"the call {said}" if said.startswith(("raised", "returned")) else said)
    return None


def unsteady(law: str, case: Case) -> Witness:
    """The witness of a case that failed once and not again."""
    return Witness(as_dict(case), law, UNSTEADY)


def as_dict(case: Case) -> dict[str, Any]:
    """A case as JSON has it."""
    found: dict[str, Any] = json.loads(case.to_json())
    return found


def _compared(operator: Operator, form: Form, case: Case, c: Comparison, calls: tuple[Call, ...], target: Target | None) -> Witness:
    import numpy as np

    if _says_itself(c):
        return Witness(as_dict(case), c.what, c.what)
    also = _also(operator, form, case, c)
    c = _finer(c)
    found, right = np.shape(c.found), np.shape(c.truth)
    if found != right:
        missing = "is not handed out" if found == (0,) else f"has the shape {found}, where {right} is right"
        return Witness(as_dict(case), c.what, f"{_singular(c.what)} {missing}{also}")
    at = c.first_bad()
    bound = float(np.broadcast_to(c.bound, right)[at])
    if c.by:
        spot = snippet.locate_gradient(c.found, at, calls, c.by)
    else:
        spot = snippet.locate(c.found, at, calls, last=_of_state(c))
    there, part = _parts(c.found[at], c.truth[at])
    code = snippet.text(target, spot, there[1], bound, part) if spot else ""
    return Witness(
        case=as_dict(case),
        what=c.what,
        breaks=f"{_wrong(c, at)}{f', its {part}' if part else ''}{also}",
        axes=axes_of(operator, case, c),
        index=at,
        found=there[0],
        right=there[1],
        bound=bound,
        error_over_bound=c.worst,
        snippet=code if spot and code and snippet.repeats(spot, c.truth[at], bound) else "",
    )


def _finer(c: Comparison) -> Comparison:
    """The comparison of each entry, where one number was compared for all and it shows there as well."""
    fine = c if c.entries is None else c.entries()
    return fine if fine.worst > 1 else c


def _says_itself(c: Comparison) -> bool:
    """Whether what was compared is no number, but yes or no: then it says what is wrong."""
    import numpy as np

    return np.shape(c.found) == np.shape(c.truth) == (1,) and c.truth[0] == 1 and not np.any(c.bound)


def _of_state(c: Comparison) -> bool:
    """Whether a state was compared, and no output beside or without one."""
    return "state" in c.what and not c.what.startswith("output")


def _wrong(c: Comparison, at: tuple[int, ...]) -> str:
    """What was compared, and that it is wrong."""
    import numpy as np

    return f"{_singular(c.what)} {'is wrong' if np.isfinite(c.found[at]) or not np.isfinite(c.truth[at]) else 'is not finite'}"


def _singular(what: str) -> str:
    """The same, of one token in the singular."""
    return re.sub(r"\b1 tokens\b", "1 token", what)


def _parts(found: Any, right: Any) -> tuple[tuple[float, float], str]:
    """Two numbers as they are, and of complex ones the part in which they differ most, with what it is called."""
    x, y = complex(found), complex(right)
    if x.imag == y.imag == 0:
        return (x.real, y.real), ""
    imaginary = not abs(x.imag - y.imag) <= abs(x.real - y.real)
    return ((x.imag, y.imag), "imaginary part") if imaginary else ((x.real, y.real), "real part")


def axes_of(operator: Operator, case: Case, c: Comparison) -> tuple[str, ...]:
    """What the axes of a comparison are called: of outputs time is the second; () of what is neither outputs nor a state."""
    from isoform.properties.laws.table import reference
    from isoform.properties.wiring.calls import axes_of as axes

    if c.by:
        return _named(axes(operator, c.by, c.truth).split(), c.truth.ndim)
    truth = reference(operator, case)
    shape = c.truth.shape
    of_state = () if truth.states is None else _named(operator.state_axes.split(), truth.states.ndim - 1)
    if _of_state(c) and len(of_state) - len(shape) in ALONE:
        return of_state[len(of_state) - len(shape) :]
    of_output = OUTPUT.get(truth.output.ndim, ())
    without = len(of_output) - len(shape)
    if without in ALONE and len(shape) > 1 and shape[2 - without :] == truth.output.shape[2:]:
        return of_output[without:]
    return ()


def _named(letters: list[str], count: int) -> tuple[str, ...]:
    return tuple("part" if letter.isdigit() else AXES.get(letter, letter) for letter in letters) if len(letters) == count else ()


def _also(operator: Operator, form: Form, case: Case, c: Comparison) -> str:
    """What else holds of the tokens of this case, entered at once as the plain call has them."""
    fine = whole(operator, form, case)
    if ("state" in c.what or c.what.startswith("gradient")) and fine.get("outputs"):
        return " although the outputs are right"
    if fine and all(fine.values()) and c.what != "output":
        return " although all tokens at once come out right"
    return ""


def whole(operator: Operator, form: Form, case: Case) -> Mapping[str, bool]:
    """Whether outputs, and the final state, of the plain call are those of the declaration; nothing where it raises."""
    from isoform.properties.laws.table import instance, outputs, reference, state_after
    from isoform.properties.operator import FormRaised

    x, truth = instance(operator, case), reference(operator, case)
    try:
        found, state = operator.run(form.function, x)
    except FormRaised:
        return {}
    fine = {"outputs": outputs("output", found, truth).worst <= 1} if truth.output.size else {}
    if truth.states is not None and state is not None:
        fine["final state"] = state_after("final state", state, truth, operator.length(x)).worst <= 1
    return fine
