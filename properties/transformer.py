"""Stacks of layers under test: an encoder, and a decoder with its memory and its window.

The plain call has the weights of all layers in one tensor each. A mask hides tokens as keys: a padding token is read by
none, and its own row reads what the others in its place would; positions count tokens alone.

The truth is the program of `isoform.properties.layers` in float64, with the bound of its own roundings added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from isoform.derivations.attention import DECLARATIONS

from . import scipy_truth, strategies
from .bounds import EXACT, stored
from .decoding import Plan
from .layers import Near, Roundings, Stage, bound, run, slope, slope_bound
from .operator import Form, Input, Instance, Operator, Reference, pair
from .strategies import LARGE, SMALL, Case, normal
from .tensors import joined, precision, rounded, tensor

Array = np.ndarray[Any, Any]
HEADS = ("q", "k", "v", "o")
NETWORK = ("up", "up_bias", "down", "down_bias")
OWN = (
    Input("x", "b t m"),
    Input("q", "n m h d"),
    Input("k", "n m hkv d"),
    Input("v", "n m hkv v"),
    Input("o", "n h v m"),
    Input("up", "n m f"),
    Input("up_bias", "n f"),
    Input("down", "n f m"),
    Input("down_bias", "n m"),
    Input("gain", "n norms m"),
    Input("shift", "n norms m"),
    Input("end_gain", "m"),
    Input("end_shift", "m"),
    Input("mask", "b s", "boolean, True meaning a token"),
)
CROSS = (
    Input("memory", "b r m"),
    Input("cross_q", "n m h d"),
    Input("cross_k", "n m hkv d"),
    Input("cross_v", "n m hkv v"),
    Input("cross_o", "n h v m"),
    Input("memory_mask", "b r", "boolean, True meaning a token"),
)
COMMON = frozenset({"sequence", "groups", "gradient", "edges", "batch", "padding-mask"})
BASE = 100.0
"""Of the angles: small, so that short sequences turn far."""


def draw(case: Case, causal: bool) -> Instance:
    """Weights of the size 1 / √(number of summands), gains around 1; tokens of the case's scale. Odd heads have no positions."""
    b, t, n, hkv, groups, d, width, m, f = (case.size(a) for a in ("b", "t", "n", "h", "groups", "d", "v", "m", "f"))
    h = hkv * groups
    reads, pre_norm = causal and case.has("memory"), not case.has("post-norm")

    def weight(purpose: int, *shape: int, summands: int = 4) -> Array:
        return rounded(case.rng(purpose).standard_normal(shape) * summands**-0.5, case.dtype)

    def attending(purpose: int) -> list[Array]:
        few = [weight(purpose + i, n, m, count, size, summands=m) for i, (count, size) in enumerate(((h, d), (hkv, d), (hkv, width)))]
        return [*few, weight(purpose + 3, n, h, width, m, summands=h * width)]

    network = (weight(5, n, m, f, summands=m), weight(6, n, f), weight(7, n, f, m, summands=f), weight(8, n, m))
    inputs = {"x": normal(case, 0, b, t, m)} | dict(zip(HEADS, attending(1), strict=True)) | dict(zip(NETWORK, network, strict=True))
    norms = (n, 3 if reads else 2, m)
    inputs |= {"gain": rounded(1 + weight(9, *norms), case.dtype), "shift": weight(10, *norms)}
    if pre_norm and case.seed % 3:
        inputs |= {"end_gain": rounded(1 + weight(11, m), case.dtype), "end_shift": weight(12, m)}
    if reads:
        inputs |= {"memory": weight(13, b, 3, m, summands=1)}
        inputs |= {f"cross_{name}": w for name, w in zip(HEADS, attending(14), strict=True)}
    base = None if case.has("no-positions") or d % 2 else BASE
    options: dict[str, Any] = {"pre_norm": pre_norm, "base": base, "eps": (1e-5, 1e-3)[case.seed % 2]}
    if causal and case.has("window"):
        options["window_size"] = case.size("window")
    return Instance(inputs | _masks(case, inputs), None, options, case.dtype)


def _masks(case: Case, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Padding before, behind or among the tokens, more in each sequence than in the one before, and in the memory; and its content."""
    where = next((f for f in PADDING if case.has(f)), "")
    if not where:
        return {}
    b, t, _ = inputs["x"].shape
    place, hidden = np.arange(t)[None], 1 + np.arange(b)[:, None]
    mask = {"padding-left": place >= hidden, "padding-right": place < t - hidden}.get(where, case.rng(20).random((b, t)) < 0.7)
    found = {"mask": mask}
    if "memory" in inputs:
        found["memory_mask"] = np.arange(inputs["memory"].shape[1])[None] >= 2 * hidden - 1  # all of the second one
    if case.has("hidden"):
        if not {"huge", "vanishing", "edge"} & set(case.flags):  # there every row must be finite, that of padding too
            found["x"] = np.where(mask[:, :, None], inputs["x"], np.nan)
        if "memory" in inputs:
            found["memory"] = np.where(found["memory_mask"][:, :, None], inputs["memory"], np.nan)
    return found


def visible(x: Instance, member: int, causal: bool) -> Array:
    """Which tokens each row sees, (t, t)."""
    t = x.inputs["x"].shape[1]
    i, j = np.arange(t)[:, None], np.arange(t)[None]
    seen = (j <= i) & (j > i - x.options.get("window_size", t)) if causal else np.ones((t, t), bool)
    return seen & x.inputs["mask"][member] if "mask" in x.inputs else seen


def angles(x: Instance, member: int) -> Array | None:
    """Of each token and pair of features: its position, among the tokens that are no padding, times base^(-2i/d)."""
    if x.options["base"] is None:
        return None
    t, d = x.inputs["x"].shape[1], x.inputs["q"].shape[-1]
    position = x.inputs["mask"][member].cumsum() - 1 if "mask" in x.inputs else np.arange(t)
    return np.asarray(position[:, None] * x.options["base"] ** (-np.arange(0, d, 2) / d))


def stages(x: Instance, member: int, causal: bool) -> tuple[list[Stage], Array]:
    """The stages of one sequence, and its tokens; hidden memory, which no row reads, is 0, and so is what is no number in padding."""
    w, turn = x.inputs, angles(x, member)
    style = {"pre_norm": x.options["pre_norm"], "eps": x.options["eps"]}
    tokens = np.where(padding(x)[member][:, None], 0, w["x"][member])
    found = []
    for n in range(len(w["q"])):
        norms = [{"gain": w["gain"][n, i], "shift": w["shift"][n, i]} for i in range(w["gain"].shape[1])]
        own = {name: w[name][n] for name in HEADS}
        found.append(Stage("attention", own | norms[0], seen=visible(x, member, causal), angles=turn, **style))
        if "memory" in w:
            sight = w["memory_mask"][member] if "memory_mask" in w else np.ones(w["memory"].shape[1], bool)
            read = np.where(sight[:, None], w["memory"][member], 0)
            cross = {name: w[f"cross_{name}"][n] for name in HEADS}
            found.append(Stage("attention", cross | norms[1], seen=np.tile(sight, (len(tokens), 1)), memory=read, **style))
        found.append(Stage("feed-forward", {name: w[name][n] for name in NETWORK} | norms[-1], **style))
    end = [Stage("norm", {"gain": w["end_gain"], "shift": w["end_shift"]}, **style)] if "end_gain" in w else []
    return found + end, tokens


def padding(x: Instance) -> Array:
    """Which tokens are padding without numbers, (b, t)."""
    return ~np.isfinite(x.inputs["x"]).all(-1) & ~x.inputs.get("mask", np.ones(x.inputs["x"].shape[:2], bool))


def refer(x: Instance, causal: bool) -> Reference:
    """The truth and its bound, one sequence after the other; that of the truth's own roundings is a share of a form's."""
    p = precision(x.dtype, x.precision)
    out, sharp, terms = np.zeros((3, *x.inputs["x"].shape))
    for member in range(len(out)):
        layers, tokens = stages(x, member, causal)
        *_, before, out[member] = run(layers, tokens)
        sharp[member] = bound(layers, tokens, p.unit) * (1 + EXACT.unit / p.unit) + p.tiny
        terms[member] = Roundings(0.0).after(layers[-1], Near(before)).terms
    bounds = stored(sharp, out, terms, p)
    out[padding(x)] = np.nan
    return Reference(out, bounds, sharp)


def derive(x: Instance, causal: bool, toward: Mapping[str, Array], weights: Array) -> tuple[float, float]:
    """The derivative of Σ weights · output in a direction, and its bound; results of 16 bits are not counted."""
    value = size = 0.0
    for member, own in enumerate(weights):

        def along(step: complex, member: int = member) -> tuple[list[Stage], Array]:
            moved = {n: a if a.dtype == bool else a + step * toward[n] for n, a in x.inputs.items()}
            return stages(replace(x, inputs=moved), member, causal)

        value += slope(along, own)
        size += slope_bound(along, own, precision(x.dtype, x.precision).unit)
    return value, size


@dataclass(frozen=True, eq=False)
class Layers(Operator):
    """Layers, whose step takes the caches of all layers for a state, and the mask of all tokens so far."""

    def token(self, step: Any, x: Instance, t: int) -> dict[str, Any]:
        """The arguments of a step."""
        mask = {"mask": tensor(x.inputs["mask"][:, : t + 1], x.dtype)} if "mask" in x.inputs else {}
        return super().token(step, x, t) | mask

    def decodes(self, x: Instance) -> bool:
        """A decoder always does."""
        return True

    def decode(self, form: Form, plan: Plan) -> Callable[..., Any]:
        """The whole by the caches of all layers; the memory enters first."""

        def whole(x: Any, memory: Any = None, memory_mask: Any = None, mask: Any = None, **weights: Any) -> Any:
            def feed(state: Any, new: Any, shown: Any) -> tuple[Any, Any]:
                if not plan.single or form.step is None:
                    return pair(form.cached["extend"](new, state=state, mask=shown, **weights))
                out, state = form.step(new.squeeze(1), state=state, mask=shown, **weights)
                return out.unsqueeze(1), state

            def enter(state: Any, a: int, b: int) -> tuple[Any, Any]:
                return feed(state, x[:, a:b], None if mask is None else mask[:, :b])

            def others(state: Any, a: int) -> Any:
                shown = None if mask is None else mask[:, :a]
                for _ in range(plan.count):
                    shown = None if shown is None else joined((shown, shown.new_ones(len(shown), 1)))
                    _, state = feed(state, x.new_full((len(x), 1, x.shape[2]), plan.content), shown)
                return state

            start = form.cached["begin"](memory=memory, memory_mask=memory_mask, spare=plan.spare, **weights)
            return joined(plan.follow(start, enter, others, form.cached["crop"]))

        return whole


SHAPE = strategies.sizes(
    b=st.integers(1, 2),
    t=st.integers(0, 8),
    n=st.sampled_from((1, 1, 1, 2, 2, 3, 4)),
    h=st.integers(1, 2),
    groups=st.integers(1, 2),
    d=st.integers(1, 4),
    v=st.integers(1, 4),
    m=st.sampled_from((3, 4, 6)),
    f=st.integers(1, 6),
    window=st.integers(1, 4),
)
PADDING = ("padding-left", "padding-right", "padding")


def corners(name: str, causal: bool) -> Iterator[Case]:
    """Cases that every run has."""
    for t, n, scale, dtype, flags in (
        (7, 4, SMALL, "float32", ("post-norm",)),
        (8, 3, LARGE, "float64", ("window", "memory")),
        (5, 2, LARGE, "float32", ("padding-left", "hidden", "memory")),
        (6, 1, SMALL, "bfloat16", ("padding-right", "memory", "post-norm")),
        (8, 1, SMALL, "float32", ("window", "no-positions")),
    ):
        sizes = (("b", 2), ("t", t), ("n", n), ("h", 2), ("groups", 2), ("d", 2), ("v", 3), ("m", 4), ("f", 5), ("window", 3))
        yield Case(name, sizes, t, dtype, scale, tuple(f for f in flags if causal or f not in ("window", "memory")))


def operator(name: str, declaration: Any, causal: bool) -> Operator:
    """One of the two operators; ``declaration`` is that of its attention."""
    styles = (("post-norm",), ("no-positions",), PADDING, ("hidden",))
    more = (("memory",), ("window",)) if causal else ()

    def derivative(x: Instance, toward: Mapping[str, Array], push: None, weights: Array, final: None) -> tuple[float, float]:
        return derive(x, causal, toward, weights)

    return Layers(
        name=name,
        declaration=declaration,
        inputs=OWN + CROSS * causal,
        state_axes="",
        capabilities=COMMON | ({"causal", "quarantine", "window"} if causal else set()),
        cases=strategies.cases(name, SHAPE, strategies.flags(*styles, *more)),
        corners=lambda: tuple(corners(name, causal)),
        draw=lambda case: draw(case, causal),
        refer=lambda x: refer(x, causal),
        derive=derivative,
        independent=lambda x: scipy_truth.layers(x, causal),
    )


OPERATORS = tuple(operator({"attention": "decoder"}.get(d.operator, "encoder"), d, d.operator == "attention") for d in DECLARATIONS)
