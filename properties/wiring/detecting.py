"""What a kernel refuses, found out by small right calls: a limit is what it refuses in so many words, never what it gets wrong.

An answer, however wrong, is no limit, and neither is an exception that only a mistake in a program raises (`probing.FAULTS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..laws.table import outputs
from ..limits import CONSTANT, GRADIENT, GROUPS, LENGTHS, MIXED, PACKING, SHORTER, UNEQUAL, Limits, Sizes
from ..operator import Operator
from ..strategies import LARGE, WIDE, Case
from ..tensors import DTYPES, SHORT, differentiable, tensors_in
from . import calls, probing
from .adapting import adapt, shown
from .convention import Wiring
from .limiting import both
from .settling import parameters

TOKENS = ((0, 1, 2, 3, 17, 65, 1024), (4, 5, 8, 12, 16, 24, 31, 32, 33, 48, 63, 64, 96, 128, 129, 192))
WIDTHS = ((1, 2, 3, 5), (4, 8, 12, 16, 17, 24, 32, 33, 48, 64))
FEATURES = ((1, 2, 3, 5, 131), (4, 8, 12, 16, 17, 24, 32, 33, 48, 64, 96, 128))
CHUNKS = ((1, 2, 3, 4, 7, 16, 64), ())
FEW = ((1, 2, 3, 5), (4, 8))
PROBED = {"t": TOKENS, "chunk": CHUNKS} | dict.fromkeys("kv", FEATURES) | dict.fromkeys("dnc", WIDTHS) | dict.fromkeys("bhw", FEW)
"""Sizes that are tried, by axis; those behind only if one of the first is refused."""
MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128)
PAIRS = (("k", "v"), ("d", "v"))
"""Features of keys and of values."""
SOME = 4
"""Refused sizes that are named."""
FIXABLE = ("k", "v", "d", "n", "c", "chunk", "w", "h", "b")
"""Axes of which one size may be all that a kernel takes; a kernel that takes one length is given it by a declaration."""


@dataclass(frozen=True)
class Detected:
    """The wiring without the arguments that are refused, the limits that were found, and what a report says of both."""

    wiring: Wiring
    limits: Limits
    notes: tuple[str, ...]


def detect(
    function: Callable[..., Any], operator: Operator, wiring: Wiring, declared: Limits | None = None, precision: str = ""
) -> Detected:
    """The limits of a kernel, in addition to those of its convention and to declared ones.

    A kernel that computes float64 in float32 is held to float32, unless ``precision`` declares what it computes in. One
    that does not even take a comfortable call has none: its laws say what it raises.
    """
    limits = both(wiring.limits, declared or Limits())
    base = _content(operator, adapt(function, operator, wiring), limits)
    if base is None:
        return Detected(wiring, limits, ())
    refused = dict(_arguments(function, operator, wiring, base))
    kept = wiring.without(*refused)
    adapted = adapt(function, operator, kept)

    @cache
    def ask(case: Case, packing: bool = False) -> probing.Answer:
        return probing.ask(operator, adapted, case, **(probing.packed(case.size("t")) if packing else {}))

    for found in _structures(operator, ask, base, calls.PACKED in shown(kept, operator)):
        limits = both(limits, found)
    if not precision:
        limits = both(limits, _narrow(operator, adapted, limits))
    gradient = _gradient(operator, adapted, base) if GRADIENT not in limits.refuses else ""
    limits = both(limits, Limits(refuses={GRADIENT: gradient})) if gradient else limits
    limits = both(limits, Limits(tuple(_sizes(ask, base, UNEQUAL in limits.refuses))))
    return Detected(kept, limits, tuple(f"{n} is never given: {said}" for n, said in refused.items()))


def _content(operator: Operator, adapted: Callable[..., Any], limits: Limits) -> Case | None:
    """A comfortable case that a kernel takes, in a dtype that it takes."""
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        case = limits.fit(replace(probing.comfortable(operator), dtype=dtype))
        if case is not None and probing.ask(operator, adapted, case).returned:
            return case
    return None


def _arguments(function: Callable[..., Any], operator: Operator, wiring: Wiring, base: Case) -> Iterator[tuple[str, str]]:
    """The arguments that a kernel has and refuses, alone and beside others, with what it says; packing is a limit."""
    adapted, needed = adapt(function, operator, wiring), calls.required(operator)
    for name in shown(wiring, operator):
        case = None if name in (*needed, calls.PACKED, operator.final_argument) else probing.with_argument(operator, name, base)
        if case is not None and wiring.carrying(name) is not None:
            alone, beside = probing.ask(operator, adapted, case, *needed, name), probing.ask(operator, adapted, case)
            if alone.refused and beside.refused:
                yield name, alone.raised


def _structures(operator: Operator, ask: Callable[..., probing.Answer], base: Case, packs: bool) -> Iterator[Limits]:
    """What is refused of dtypes, groups, unequal features and packing."""
    sizes = dict(base.sizes)
    for dtype in DTYPES:
        yield _refusal(ask(replace(base, dtype=dtype)), dtype, f"{dtype} is refused")
    for dtype in SHORT:
        if ask(replace(base, dtype=dtype)).returned:
            yield _refusal(ask(replace(base, dtype=dtype, flags=(WIDE,))), MIXED, f"gates of float32 beside {dtype} are refused")
    if "groups" in sizes:
        yield _refusal(ask(base.resized(groups=2)), GROUPS, "two heads of values for one of keys are refused")
    if "g" in sizes:
        yield _refusal(ask(replace(base.resized(g=2), flags=("grouped",))), GROUPS, "groups of weights are refused")
        yield _refusal(ask(replace(base, flags=("constant-weights",))), CONSTANT, "weights without an axis of time are refused")
    if any("s" in i.axes.split() for i in operator.inputs):
        yield _refusal(longer := ask(replace(base, flags=("longer",))), LENGTHS, "more keys than queries are refused")
        if longer.returned:
            yield _refusal(ask(replace(base, flags=("shorter",))), SHORTER, "fewer keys than queries are refused")
    for keys, values in PAIRS:
        if keys in sizes and values in sizes:
            yield _refusal(ask(base.resized(**{keys: 16, values: 32})), UNEQUAL, f"{keys.upper()} ≠ {values.upper()} is refused")
    if packs:
        yield _refusal(ask(base, packing=True), PACKING, "packed sequences are refused")


def _narrow(operator: Operator, adapted: Callable[..., Any], limits: Limits) -> Limits:
    """That float64 is not taken, where its results are as near to the truth as float32 allows, and no nearer."""
    case = limits.fit(replace(operator.corners()[0], dtype="float64", scale=LARGE, flags=()))
    if case is None or case.dtype != "float64" or not probing.ask(operator, adapted, case).returned:
        return Limits()
    x = operator.draw(case)
    found, _ = operator.run(adapted, x)
    wide, narrow = (outputs("output", found, operator.refer(replace(x, precision=p))) for p in ("", "float32"))
    if wide.worst <= 1 or narrow.worst > 1:
        return Limits()
    return Limits(
        refuses={"float64": "float64 is computed in float32, so it is held to float32 (a declared precision float64 holds it to more)"}
    )


def _refusal(answer: probing.Answer, word: str, says: str) -> Limits:
    return Limits(refuses={word: f"{says}: {answer.raised}"}) if answer.refused else Limits()


def _sizes(ask: Callable[[Case], probing.Answer], base: Case, equal: bool) -> Iterator[Sizes]:
    """The sizes of each axis that are taken, where some are refused."""
    for axis, now in base.sizes:
        together = next(((k, v) for k, v in PAIRS if equal and axis in (k, v)), (axis,))

        def at(n: int, axes: Sequence[str] = together) -> probing.Answer:
            return ask(base.resized(**dict.fromkeys(axes, n)))

        few, many = PROBED.get(axis, ((), ()))
        if any(_refuses(n, at(n)) for n in few):
            answers = {n: at(n) for n in sorted({*few, *many, now})}
            found = _pattern(axis, answers, now)
            if found is not None:
                yield found


def _refuses(n: int, answer: probing.Answer) -> bool:
    """Whether a size is refused; of no token whatever is raised is, since few say that in so many words."""
    return answer.refused or (n == 0 and not answer.returned)


def _pattern(axis: str, answers: Mapping[int, probing.Answer], now: int) -> Sizes | None:
    """The multiples from a least size to a largest that are taken, if it is exactly those, and the others are refused."""
    taken = [n for n, a in answers.items() if a.returned]
    refused = [n for n, a in answers.items() if _refuses(n, a)]
    if len(taken) + len(refused) < len(answers):
        return None
    least = min(taken)
    because = f"{axis.upper()} = {refused[0]} raises {answers[refused[0]].raised}"
    for m in MULTIPLES:
        if taken == [n for n in answers if n % m == 0 and least <= n <= max(taken)]:
            top = max(taken) if any(n > max(taken) for n in refused if n % m == 0) else None
            said = [f"a multiple of {m}"] * (m > 1) + [f"at least {least}"] * (least > 0) + [f"at most {top}"] * (top is not None)
            return Sizes(axis, multiple=m, least=least, most=top, reason=f"{axis.upper()} must be {' and '.join(said)}: {because}")
    some = ", ".join(map(str, refused[:SOME])) + ", …" * (len(refused) > SOME)
    reason = f"of {axis.upper()} only {now} is tried, since {some} are refused: {because}"
    return Sizes(axis, least=now, most=now, reason=reason) if axis in FIXABLE else None


def _gradient(operator: Operator, adapted: Callable[..., Any], base: Case) -> str:
    """Why no gradient can be asked for, or ""."""
    x = probing.drawn(operator, base, parameters(adapted) or ())
    leaves = {n: t.requires_grad_() if differentiable(t) else t for n, t in operator.tensors(x).items()}
    try:
        results = tensors_in(adapted(**{**leaves, **operator.arguments(adapted, x)}))
    except probing.FAULTS:
        return ""
    except Exception as error:
        return f"inputs that ask for a gradient are refused: {error}"
    if not any(r.requires_grad for r in results):
        return "the output has none"
    try:
        results[0].sum().backward()
    except NotImplementedError as error:
        return f"the backward pass is not implemented: {error}"
    except Exception:
        return ""
    return ""
