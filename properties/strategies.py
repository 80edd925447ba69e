"""Cases: shapes, a seed and structure flags, from which the arrays are made deterministically.

Nothing is drawn element by element: a case is small, shrinks well, and prints as one line of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .tensors import DTYPES, OPERAND_DTYPES, SHORT, rounded

Array = np.ndarray[Any, Any]
SMALL, LARGE, ORDINARY = "small", "large", "ordinary"
SCALES = (SMALL, LARGE)
"""The scales that are drawn; what is shown of a failure may be an ordinary case."""
_EXPONENT = {
    "float64": {SMALL: -20, LARGE: 20, ORDINARY: 0},
    "float32": {SMALL: -10, LARGE: 10, ORDINARY: 0},
    "bfloat16": {SMALL: -10, LARGE: 10, ORDINARY: 0},
    "float16": {SMALL: -3, LARGE: 2, ORDINARY: 0},
}
"""Powers of two that inputs are scaled by; float16 has a small range."""
EIGHTHS = 8
"""Ordinary numbers are multiples of 1/8, none of them 0: short to write, and each has its say."""


@dataclass(frozen=True)
class Case:
    """One example: operator, sizes by axis name, seed, dtype, scale of the inputs, structure flags, and the precision of the form."""

    operator: str
    sizes: tuple[tuple[str, int], ...]
    seed: int = 0
    dtype: str = "float32"
    scale: str = SMALL
    flags: tuple[str, ...] = ()
    precision: str = ""

    def size(self, axis: str) -> int:
        """The size of an axis. Raises KeyError for an axis that the case has not."""
        return dict(self.sizes)[axis]

    @property
    def chunk(self) -> int | None:
        """The size of a chunk, of a block of keys or of a filter; None where the case has none of these."""
        return next((size for axis, size in self.sizes if axis in ("chunk", "block", "w")), None)

    def resized(self, **sizes: int) -> Case:
        """The case with other sizes of axes that it has."""
        return replace(self, sizes=tuple((n, sizes.get(n, s)) for n, s in self.sizes))

    def has(self, flag: str) -> bool:
        """Whether a structure flag is set."""
        return flag in self.flags

    @property
    def unit(self) -> float:
        """The factor that scales the inputs."""
        extreme = 30 * (self.has("huge") - self.has("vanishing"))
        held = "float16" if "float16" in (self.precision, OPERAND_DTYPES.get(self.precision)) else self.dtype
        return float(2.0 ** (extreme or _EXPONENT[held][self.scale]))

    def plain(self, x: Array) -> Array:
        """The numbers as they are; of an ordinary case the next multiples of 1/`EIGHTHS`."""
        return np.copysign(np.ceil(np.abs(x) * EIGHTHS) / EIGHTHS, x) if self.scale == ORDINARY else x

    def rng(self, *purpose: int) -> np.random.Generator:
        """The random numbers of this case, one independent stream per purpose."""
        return np.random.default_rng([self.seed, *purpose])

    def to_json(self) -> str:
        """The case as one line of JSON; `from_json` reads it."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Case:
        """The case that `to_json` wrote."""
        d = json.loads(text)
        return Case(**{**d, "sizes": tuple((n, s) for n, s in d["sizes"]), "flags": tuple(d["flags"])})


WIDE = "wide-gates"
"""Structure in which logs of decays stay in float32 beside inputs of 16 bits."""
HIDDEN = "hidden"
"""Structure in which NaN and infinity stand behind a mask."""
SCALINGS = ("unit-scale", "other-scale")


def scaling(case: Case) -> dict[str, float]:
    """The option ``scale``: 1, a factor that is neither 1 nor the default (negative and 0 among them), or none."""
    if case.has("other-scale") and not case.has("dyadic"):
        return {"scale": (-0.75, 0.0, 1.75)[case.seed % 3]}
    return {"scale": 1.0} if case.has("unit-scale") or case.has("dyadic") else {}


def normal(case: Case, purpose: int, *shape: int, scaled: bool = True, wide: bool = False) -> Array:
    """Normal numbers of the case's scale, rounded to its dtype; integers from -2 to 2 for a dyadic case.

    ``wide`` ones are kept in float32 where the dtype has 16 bits, as states are.
    """
    if case.has("dyadic"):
        return case.rng(purpose).integers(-2, 3, shape).astype(float)
    dtype = "float32" if wide and case.dtype in SHORT else case.dtype
    return rounded(case.plain(case.rng(purpose).standard_normal(shape)) * (case.unit if scaled else 1.0), dtype)


lengths = st.one_of(st.sampled_from((0, 1, 2, 3)), st.integers(0, 20))
chunks = st.sampled_from((1, 2, 3, 4, 7, 16, 64))
seeds = st.integers(0, 2**16)
dtypes = st.sampled_from(DTYPES)


def sizes(**axes: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    """Sizes by axis name."""
    return st.fixed_dictionaries(axes).map(lambda d: tuple((name, d[name]) for name in axes))


def flags(*groups: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """At most one flag of each group; the empty word is no flag."""
    return st.tuples(*(st.sampled_from(("", *g)) for g in groups)).map(lambda found: tuple(f for f in found if f))


def cases(
    operator: str,
    shape: st.SearchStrategy[tuple[tuple[str, int], ...]],
    structure: st.SearchStrategy[tuple[str, ...]],
) -> Callable[..., st.SearchStrategy[Case]]:
    """The cases of an operator, as a function of the scales and dtypes that are wanted."""

    def build(scales: Sequence[str] = SCALES, wanted: Sequence[str] = DTYPES) -> st.SearchStrategy[Case]:
        return st.builds(
            Case, st.just(operator), shape, seeds, st.sampled_from(tuple(wanted)), st.sampled_from(tuple(scales)), structure
        )

    return build
