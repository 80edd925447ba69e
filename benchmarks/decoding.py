"""Time decoding with attention: a step beside one fused call, whole sequences beside their counted cost. Run by `make bench`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.operators import BATCH, HEADS, KEY, VALUE
from benchmarks.report import markdown, number
from benchmarks.speed import PAGE, RESULTS, write_between
from benchmarks.timing import LAPS, interleaved
from isoform.derivations.attention.costs import KV_CACHE_COST
from isoform.derivations.attention.operators import T
from isoform.derivations.evaluate.frame import Frame
from isoform.derivations.evaluate.program import evaluate
from isoform.derivations.evaluate.systems import Rationals
from isoform.derivations.kernel.terms import Term, index
from isoform.impl import attention

MARKS = ("<!-- decoding: written by benchmarks/decoding.py -->\n", "<!-- /decoding -->")
CACHED, DECODED = (512, 2048, 8192), (128, 256, 512, 1024)
QUICK = (16, 32)
ROW = 16
"""Calls in a row in a lap: one alone finds the processor's caches as the other contestants left them."""
TARGET = 1.5
STEP, FUSED = "isoform step", "fused call on a static cache"


def main() -> None:
    """Time, and write decoding.md; the page in docs only beside the results in their usual place."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding", description="Time decoding with attention.")
    parser.add_argument("--quick", action="store_true", help="short sequences: shows that everything runs, measures nothing")
    parser.add_argument("--to", type=Path, default=RESULTS, help="folder for decoding.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cached, decoded = (QUICK, QUICK) if options.quick else (CACHED, DECODED)
    with torch.no_grad():
        text = f"{step_table(cached)}\n\n{sequence_table(decoded)}\n"
    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / "decoding.md").write_text(f"# Decoding\n\n{text}", encoding="utf-8")
    print(text)
    if options.to == RESULTS:
        write_between(PAGE, MARKS, text)


def step_table(lengths: tuple[int, ...]) -> str:
    """One token after so many in the cache, which goes on growing: beside the fused call alone, on as many keys and values that stand."""
    rows = []
    for length in lengths:
        laps = interleaved({name: _in_a_row(call) for name, call in _steps(length).items()}, 0.5)
        times = {name: 1000 * time.processor / ROW for name, time in laps.items()}
        ratio = times[STEP] / times[FUSED]
        rows.append((length, *(number(t) for t in times.values()), f"{ratio:.2f}", TARGET, "yes" if ratio <= TARGET else "no"))
    names = (STEP, FUSED, "fused call on keys and values joined anew")
    head = ("tokens in the cache", *(f"{name}, μs" for name in names), "ratio of the first two", "to reach", "reached")
    return f"One token more, one thread, float32, B={BATCH} H={HEADS} K={KEY} V={VALUE}:\n\n" + markdown(head, rows)


def sequence_table(lengths: tuple[int, ...]) -> str:
    """All tokens, one after the other, from the cache and by whole passes: the proved numbers of products, and the time."""
    rows = []
    for length in lengths:
        q, k, v = _tokens(length)
        calls = {"cache": lambda q=q, k=k, v=v: _from_cache(q, k, v), "passes": lambda q=q, k=k, v=v: _by_passes(q, k, v)}
        times = interleaved(calls, 0.5)
        cached, again = (part.rhs for part in KV_CACHE_COST.statement.conclusion.args[1::2])  # type: ignore[attr-defined]
        products = _value(cached, length) // 2, _value(again, length) // 6
        rows.append((length, *(f"{n / 1e6:.1f}" for n in products), *(number(times[name].processor) for name in calls)))
    head = ("tokens", "million products, cache", "million products, whole passes", "ms, cache", "ms, whole passes")
    return "Decoding a sequence; the products are proved (`isoform show attention/kv-cache-cost`):\n\n" + markdown(head, rows)


def _tokens(length: int) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(BATCH, length, HEADS, size, generator=random) for size in (KEY, KEY, VALUE))
    return q, k, v


def _steps(length: int) -> dict[str, Callable[[], object]]:
    q, k, v = _tokens(length)
    _, cache = attention.extend(q, k, v)
    token = (q[:, -1], k[:, -1], v[:, -1])

    def step() -> None:
        nonlocal cache
        _, cache = attention.step(*token, cache)

    one, keys, values = q[:, -1:].transpose(1, 2).clone(), *(x.transpose(1, 2).contiguous() for x in (k, v))
    all_keys, all_values = (torch.cat([x, x.new_zeros(BATCH, HEADS, ROW * (LAPS[1] + 1), x.shape[-1])], 2) for x in (keys, values))
    seen = length

    def fused() -> Tensor:
        nonlocal seen
        seen += 1
        return scaled_dot_product_attention(one, all_keys[:, :, :seen], all_values[:, :, :seen])

    def joined() -> Tensor:
        return scaled_dot_product_attention(one, *(torch.cat([x, x[:, :, -1:]], 2) for x in (keys, values)))

    return {STEP: step, FUSED: fused, "joined": joined}


def _in_a_row(call: Callable[[], object]) -> Callable[[], None]:
    def lap() -> None:
        for _ in range(ROW):
            call()

    return lap


def _from_cache(q: Tensor, k: Tensor, v: Tensor) -> None:
    cache = None
    for token in zip(*(x.unbind(1) for x in (q, k, v)), strict=True):
        _, cache = attention.step(*token, cache)


def _by_passes(q: Tensor, k: Tensor, v: Tensor) -> None:
    for t in range(1, q.shape[1] + 1):
        attention.masked(q[:, :t], k[:, :t], v[:, :t])


def _value(x: Term, length: int) -> int:
    """A proved cost, for all heads."""
    sizes = {T: length, index("d_k"): KEY, index("d_v"): VALUE}
    return BATCH * HEADS * int(Rationals().table(evaluate(x, Frame(Rationals(), None, sizes)))[0][0])  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
