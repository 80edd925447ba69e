"""What a form cannot take of its operator's domain, and why: laws are held on the rest, and say what they left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from .strategies import WIDE, Case
from .tensors import DTYPES

PACKING, GRADIENT, GROUPS, UNEQUAL, MIXED, CONSTANT, LENGTHS = "packing", "gradient", "groups", "unequal", "mixed", "constant", "lengths"
SHORTER, NONFINITE, COMPLEX = "shorter", "nonfinite", "complex"
REFUSALS = (PACKING, GRADIENT, GROUPS, UNEQUAL, MIXED, CONSTANT, LENGTHS, SHORTER, NONFINITE, COMPLEX, *DTYPES)
"""Packed sequences, gradients, more than one group of heads or weights, K ≠ V, gates of float32 beside 16 bits, weights without an
axis of time, more keys or fewer than queries, fewer keys alone, NaN and infinity in tokens that a row does not see, complex
numbers, and dtypes."""
FLAGS = {
    MIXED: (WIDE,),
    CONSTANT: ("constant-weights",),
    GROUPS: ("grouped", "grouped-writes", "other-groups"),
    LENGTHS: ("longer", "shorter"),
    SHORTER: ("shorter",),
    NONFINITE: ("hidden",),
    COMPLEX: ("complex",),
}
"""The structure of a case that goes with a word."""
FALLBACK = {
    "float64": ("float32",),
    "float32": ("float64",),
    "bfloat16": ("float16", "float32", "float64"),
    "float16": ("bfloat16", "float32", "float64"),
}
"""What a case is in where its dtype is refused: never a shorter one, in which a law could say less."""
TOKENS, SPREAD = 5, 128
"""A unit of tokens stands for so many drawn ones, as long as it makes at most so many tokens."""


@dataclass(frozen=True)
class Sizes:
    """Which sizes of an axis a form takes: multiples of ``multiple`` from ``least`` to ``most``, and why no others.

    The axes are those of the operator's cases: ``t`` tokens, ``k`` and ``v`` features, ``chunk``, … Raises ValueError where
    there is no such size.
    """

    axis: str
    _: KW_ONLY
    multiple: int = 1
    least: int = 0
    most: int | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.multiple < 1 or (self.most is not None and self.most // self.multiple * self.multiple < self.least):
            raise ValueError(f"{self.axis}: no multiple of {self.multiple} is from {self.least} to {self.most}")

    def fit(self, size: int) -> int:
        """The next size that is taken, upwards if there is one."""
        above = -(-max(size, self.least) // self.multiple) * self.multiple
        return above if self.most is None else min(above, self.most // self.multiple * self.multiple)


@dataclass(frozen=True)
class Limits:
    """Sizes of axes, and words of `REFUSALS` with the reason why a form does not take what they stand for.

    Raises ValueError for another word, and for two entries of one axis.
    """

    sizes: tuple[Sizes, ...] = ()
    refuses: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.refuses) - set(REFUSALS))
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: a limit is one of {', '.join(REFUSALS)}")
        axes = [s.axis for s in self.sizes]
        if len(set(axes)) != len(axes):
            raise ValueError(f"two limits are of one axis: {', '.join(axes)}")
        if set(DTYPES) <= set(self.refuses):
            raise ValueError("no dtype is left")

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return bool(self.sizes or self.refuses)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is left out, in words."""
        given = [s.reason or f"the form does not take every size of the axis {s.axis}" for s in self.sizes]
        return (*given, *map(self.reason, self.refuses))

    def reason(self, word: str) -> str:
        """Why the form does not take what a word stands for."""
        return self.refuses[word] or f"the form takes no {word}"

    def fit_size(self, axis: str, size: int) -> int:
        """The next size of an axis that is taken."""
        return next((s.fit(size) for s in self.sizes if s.axis == axis), size)

    def kept(self, axis: str, sizes: Iterable[int]) -> list[int]:
        """Those sizes of an axis that are taken, in order, each once."""
        return sorted({n for n in sizes if self.takes(axis, n)})

    def takes(self, axis: str, size: int) -> bool:
        """Whether a size of an axis is taken."""
        return self.fit_size(axis, size) == size

    def cut(self, places: Iterable[int], steps: int) -> list[int]:
        """Where a sequence of so many tokens is cut, from 0 to its end, if each part is to be taken: at these places or near them."""
        ends = [0]
        for place in places:
            start = ends[-1]
            wanted = min(place, steps) - start
            near = sorted(range(steps - start + 1), key=lambda n: (abs(n - wanted), -n))
            ends += [start + n for n in near if self.takes("t", n) and (start + n == steps or self.takes("t", steps - start - n))][:1]
        return ends if ends[-1] == steps and len(ends) > 1 else [*ends, steps]

    def spread(self, case: Case) -> Case:
        """The case with several units of tokens in the place of several tokens, if only whole units are taken: else there would be one."""
        unit, steps = self.fit_size("t", 1), dict(case.sizes).get("t", 0)
        several = min(-(-steps // TOKENS), max(1, SPREAD // unit)) * unit
        return case.resized(t=max(steps, several)) if steps and unit > 1 else case

    def fit(self, case: Case) -> Case | None:
        """The case as the form takes it, or None where its dtype is refused and every other says less."""
        dtype = next((d for d in (case.dtype, *FALLBACK[case.dtype]) if d not in self.refuses), None)
        if dtype is None:
            return None
        sizes = {n: self.fit_size(n, s) for n, s in case.sizes}
        if GROUPS in self.refuses:
            sizes |= dict.fromkeys({"groups", "g"} & set(sizes), 1)
        keys = sizes.get("k", sizes.get("d"))
        if UNEQUAL in self.refuses and "v" in sizes and keys is not None:
            sizes["v"] = keys
        flags = tuple(f for f in case.flags if not any(f in FLAGS.get(word, ()) for word in self.refuses))
        return replace(case.resized(**sizes), dtype=dtype, flags=flags)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that are taken."""
        return tuple(d for d in DTYPES if d not in self.refuses)


NO_LIMITS = Limits()
"""All of the domain is taken."""
