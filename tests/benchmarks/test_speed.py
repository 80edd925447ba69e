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
        assert {"isoform recurrent", "isoform chunkwise"} <= {one.name for one in ours(benchmark, operator)}


def test_our_forms_are_right_and_a_wrong_one_is_wrong(benchmark):
    operators, checking = benchmark("operators"), benchmark("checking")
    for operator in operators.OPERATORS:
        able = [one for one in ours(benchmark, operator) if one.name.endswith("chunkwise")]
        wrong = [replace(one, name="wrong", call=lambda one=one, **x: 1.01 * one.call(**x)) for one in able]
        broken = [replace(one, name="detached", call=lambda one=one, **x: one.call(**x).detach()) for one in able]
        found = checking.checks(operator, LENGTH, able + wrong + broken)
        right = {name: [check.right(way) for way in (operators.FORWARD, operators.BOTH)] for name, check in found.items()}
        assert right == {"isoform chunkwise": [True, True], "wrong": [False, False], "detached": [True, False]}


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


def test_every_peer_package_is_pinned():
    pins = (ROOT / "benchmarks" / "peers.txt").read_text(encoding="utf-8")
    named = re.search(r"^PACKAGES = \((.*)\)$", (ROOT / "benchmarks" / "speed.py").read_text(encoding="utf-8"), re.MULTILINE)
    for package in re.findall(r'"([^"]+)"', named[1]):
        assert package == "torch" or re.search(rf"^{package}==\d", pins, re.MULTILINE)
