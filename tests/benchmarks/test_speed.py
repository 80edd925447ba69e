"""The benchmark runs on our own forms; nothing here looks at a time."""

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
LENGTH = 64


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def ours(benchmark, operator):
    able, _ = benchmark("contestants").contestants(operator)
    return [one for one in able if one.ours]


def test_every_operator_has_the_forms_that_are_timed(benchmark):
    for operator in benchmark("operators").OPERATORS:
        assert {f"isoform {operator.truth}", f"isoform {operator.form}"} <= {one.name for one in ours(benchmark, operator)}


def test_our_forms_are_right_and_a_wrong_one_is_wrong(benchmark):
    operators, checking = benchmark("operators"), benchmark("checking")
    for operator in operators.OPERATORS:
        able = [one for one in ours(benchmark, operator) if one.name == f"isoform {operator.form}"]
        wrong = [replace(one, name="wrong", call=lambda one=one, **x: 1.01 * one.call(**x)) for one in able]
        broken = [replace(one, name="detached", call=lambda one=one, **x: one.call(**x).detach()) for one in able]
        void = [replace(one, name="void", call=lambda one=one, **x: one.call(**x) * float("nan")) for one in able]
        found = checking.checks(operator, LENGTH, able + wrong + broken + void)
        right = {name: [check.right(way) for way in (operators.FORWARD, operators.BOTH)] for name, check in found.items()}
        assert right == {f"isoform {operator.form}": [True, True], "wrong": [False] * 2, "detached": [True, False], "void": [False] * 2}


def test_a_call_that_is_not_made_is_not_right(benchmark):
    operator = benchmark("operators").OPERATORS[0]
    one = ours(benchmark, operator)[0]
    found = benchmark("checking").checks(operator, LENGTH, [one], lambda name, direction: direction == "forward")[one.name]
    assert set(found.milliseconds) == {"forward"}
    assert [found.right(way) for way in ("forward", "forward+backward")] == [True, False]


def test_rows_may_be_scaled_only_where_a_peer_says_so(benchmark):
    operator = benchmark("operators").OPERATORS[0]
    one = ours(benchmark, operator)[0]
    scaled = replace(one, call=lambda **x: one.call(**x) * torch.linspace(1, 2, LENGTH)[:, None, None])
    for row_scale in (False, True):
        found = benchmark("checking").checks(operator, LENGTH, [replace(scaled, row_scale=row_scale)])
        assert found[one.name].right("forward") is row_scale


def test_calls_take_turns_until_their_time_is_up(benchmark):
    calls = []
    times = benchmark("timing").interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, seconds=10)
    _, laps = benchmark("timing").LAPS
    assert calls[:6] == ["a", "b", "a", "b", "b", "a"]
    assert {name: time.laps for name, time in times.items()} == {"a": laps, "b": laps}


def test_a_forecast_goes_on_as_before_and_never_slower_than_a_line(benchmark):
    forecast = benchmark("timing").forecast
    assert forecast({}, 8192) == 0
    assert forecast({512: 1.0}, 2048) == pytest.approx(4.0)
    assert forecast({512: 1.0, 2048: 16.0}, 8192) == pytest.approx(256.0)
    assert forecast({512: 1.0, 2048: 1.0}, 8192) == pytest.approx(4.0)


def test_a_peer_that_cannot_be_loaded_is_named_with_its_reason(benchmark, monkeypatch):
    contestants, peers = benchmark("contestants"), benchmark("peers")

    def load():
        raise ModuleNotFoundError("No module named 'nowhere'")

    monkeypatch.setattr(contestants, "PEERS", (peers.Peer("nowhere", ("retention",), load),))
    _, missing = contestants.contestants(next(o for o in benchmark("operators").OPERATORS if o.name == "retention"))
    assert missing == {"nowhere": "ModuleNotFoundError: No module named 'nowhere'"}


def test_every_peer_package_is_pinned(benchmark):
    pins = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks" / "peers.txt", ROOT / "constraints.txt"))
    for package in benchmark("speed").PACKAGES:
        assert package == "torch" or re.search(rf"^{package}==\d", pins, re.MULTILINE)


def found(ours, peer):
    def time(name, direction, milliseconds):
        return {"operator": "delta-rule", "name": name, "length": 8192, "direction": direction, "processor": milliseconds, "clock": 0.0}

    check = {"operator": "delta-rule", "name": "bad", "length": 8192, "output": 0.5, "gradient": 0.25, "broken": ""}
    run = {"threads": 1, "rate": {"processor": 2e6, "clock": 1e6}}
    run["times"] = [time("isoform chunkwise", "forward", ours), time("peer", "forward", peer), time("in C++", "forward", 1.0)]
    return {
        "packages": {"torch": "1", "mambapy": "not installed"},
        "lengths": [8192],
        "cores": 2,
        "load": [0.0, 1.0],
        "seconds": 60.0,
        "torch_peers": ["peer"],
        "missing": {"delta-rule": {"gone": "ModuleNotFoundError: No module named 'gone'"}},
        "skipped": [],
        "checks": [check | {"right": {"forward": False, "forward+backward": True}}],
        "costs": {"delta-rule": {"operations": 20_000_000, "bytes": 3_000_000, "straight": True}},
        "runs": [run],
        "growth": [{"operator": "delta-rule", "direction": "forward", "times": {"2048": 1.0, "16384": 8.0}, "exponent": 1.0}],
    }


@pytest.mark.parametrize(("ours", "ratio", "reached"), [(69.0, "0.69", "yes"), (71.0, "0.71", "no")])
def test_a_target_is_reached_beside_the_best_torch_peer_only(benchmark, ours, ratio, reached):
    text = benchmark("report").summary(found(ours, 100.0))
    assert f"| delta-rule | 1 | forward | chunkwise | {ours:.1f} | peer | 100 | {ratio} | 0.7 | {reached} | {ours / 10:.1f} |" in text
    assert "| delta-rule | 1 | forward+backward | chunkwise | missing |" in text


def test_what_is_not_timed_is_named(benchmark):
    text = benchmark("report").table(found(1.0, 2.0))
    assert "- delta-rule: gone: ModuleNotFoundError: No module named 'gone'" in text
    assert "- delta-rule: bad, forward: wrong, by 5.0e-01 in the output and 2.5e-01 in a gradient (T = 8192)" in text
    assert "| delta-rule | 20 | 3 | yes, both | 1.00 |  |" in text


def test_decoding_is_timed_beside_its_proved_cost(benchmark):
    decoding = benchmark("decoding")
    assert re.search(r"\| 4 \| \S+ \| \S+ \| \S+ \| \d+\.\d\d \| 1.5 \| (yes|no) \|$", decoding.step_table((4,)))
    products = decoding._value(decoding.KV_CACHE_COST.statement.conclusion.args[1].rhs, 10) // 2
    assert products == 4 * 128 * 10 * 11 // 2  # four heads; of each pair a score of 64 products, and 64 for the values
    assert decoding.sequence_table((10,)).splitlines()[-1].startswith("| 10 | 0.0 | 0.2 |")
