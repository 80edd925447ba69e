"""A call that goes wrong is found among the calls of a law, and its Python stands alone."""

from pathlib import Path

import numpy as np
import pytest
import torch

from isoform.checking import plan, trial
from isoform.checking.snippet import MOST, Call, Log, Spot, locate, locate_gradient, repeats, spelt_out, text
from isoform.checking.target import Target, parse

TARGET = Target("kernels", "shift")
KERNELS = Path(__file__).parent / "kernels" / "kernels.py"


def of(x):
    return x.to(torch.float64).numpy()


def call(*results):
    return Call((), {}, results)


def test_the_entry_is_found_in_the_latest_call_that_has_it():
    a, b = torch.arange(6.0).reshape(1, 3, 2), torch.arange(6.0, 12).reshape(1, 3, 2)
    calls = [call(a, b), call(b, a), call(b, b)]
    assert locate(of(a), (0, 2, 1), calls) == Spot(calls[1], 1, (0, 2, 1))


def test_the_state_is_looked_for_from_the_last_result_on():
    a = torch.ones(1, 1, 1)
    assert locate(of(a), (0, 0, 0), [call(a, a)]).part == 0
    assert locate(of(a), (0, 0, 0), [call(a, a)], last=True).part == 1


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_axes_in_another_order_are_followed(order):
    raw = torch.arange(24.0).reshape(2, 3, 4)
    spot = locate(of(raw).transpose(order), (1, 2, 1) if order == (1, 2, 0) else (1, 1, 1), [Call((), {}, raw)])
    assert spot.part is None
    at = (1, 2, 1) if order == (1, 2, 0) else (1, 1, 1)
    assert raw[spot.index] == of(raw).transpose(order)[at]


def test_rows_of_a_longer_result_and_parts_of_a_longer_comparison_are_found():
    whole = torch.arange(20.0).reshape(1, 10, 2)
    assert locate(of(whole)[:, :4], (0, 3, 1), [call(whole)]).index == (0, 3, 1)
    parts = [call(whole[:, :5]), call(whole[:, 5:])]
    assert locate(of(whole), (0, 7, 1), parts) == Spot(parts[1], 0, (0, 2, 1))


def test_what_no_call_returned_is_not_found():
    assert locate(np.full((1, 3, 2), 7.0), (0, 0, 0), [call(torch.zeros(1, 3, 2))]) is None


def shift(x, by=0.0, mask=None):
    return x + by, x


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_python_of_a_call_gives_the_same_number(dtype, monkeypatch, capsys):
    x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, 1] = torch.inf
    log = Log()
    with log.open():
        result = log.keeping(shift)(x, by=0.125, mask=torch.tensor([True, False]))
    monkeypatch.setitem(__import__("sys").modules, "kernels", __import__("types").SimpleNamespace(shift=shift))
    code = text(TARGET, Spot(log.calls[0], 0, (1, 2)), 1.5, 1e-7)
    exec(code, {})
    assert capsys.readouterr().out == f"{result[0][1, 2].item()}\n"
    assert "right is 1.5, within 1e-07" in code and "isoform" not in code


def witness(name, law):
    """What one law shows of a kernel of the delta rule."""
    target = parse(f"{KERNELS}:{name}")
    return trial.try_law(plan.make(target, name, "delta-rule", level="quick", laws=law, fail_fast=True), {}, law, None).smallest


@pytest.mark.parametrize(
    ("name", "law", "axes"),
    [
        ("loud", "gradient-of-inputs", ("batch", "time", "head", "key feature")),
        ("detached", "gradient-through-final-state", ("batch", "time", "head")),
        ("misreads", "layout", ("batch", "time", "head", "feature")),
    ],
)
def test_the_python_of_gradients_and_of_views_is_as_wrong(name, law, axes, monkeypatch, capsys):
    found = witness(name, law)
    monkeypatch.syspath_prepend(KERNELS.parent)
    exec(found.snippet, {})
    printed = float(capsys.readouterr().out)
    assert found.axes == axes and not abs(printed - found.right) <= found.bound
    assert np.array_equal(printed, found.found, equal_nan=True)
    assert f"right is {spelt_out(found.right, found.bound)}," in found.snippet and "isoform" not in found.snippet
    assert ("torch.autograd.grad" in found.snippet) == law.startswith("gradient")


def test_a_gradient_is_found_where_it_is_the_only_one_or_has_its_name():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    one = Call((), {"a": a, "b": b}, a.detach(), arriving={None: torch.ones(2)}, gradients={"a": torch.tensor([1.0, 2.0])})
    assert locate_gradient(np.array([1.0, 2.0]), (1,), [one], "c").by == "a"
    assert locate_gradient(np.zeros(2), (0,), [one], "b").by == "b", "no gradient is one of zeros"
    assert locate_gradient(np.zeros(2), (0,), [one], "c") is None
    assert locate_gradient(np.array([1.0, 2.0]), (1,), [one, one], "a") is None


def test_a_call_that_comes_out_right_once_more_shows_nothing():
    turns = iter([2.0, 1.0, 2.0])
    once = Call((), {"x": torch.ones(1)}, torch.full((1,), 2.0), lambda x: x * next(turns))
    assert [repeats(Spot(once, None, (0,)), 1.0, 0.5) for _ in range(4)] == [True, False, True, False]


def test_a_call_is_kept_as_it_was_made():
    def spoil(x):
        return x.zero_()

    log = Log()
    with log.open():
        log.keeping(spoil)(torch.ones(2))
    log.keeping(spoil)(torch.ones(2))
    assert len(log.calls) == 1 and log.calls[0].positional[0].tolist() == [1.0, 1.0]


def test_many_numbers_and_a_function_without_a_name_have_no_snippet():
    many = Call((torch.zeros(MOST + 1),), {}, torch.zeros(1))
    assert text(TARGET, Spot(many, None, (0,)), 0.0, 0.0) == ""
    assert text(None, Spot(call(torch.zeros(1)), 0, (0,)), 0.0, 0.0) == ""


def test_a_function_in_a_file_is_imported_from_its_folder():
    code = text(Target("/somewhere/mine.py", "Net.scan"), Spot(call(torch.zeros(1)), 0, (0,)), 0.0, 0.0)
    assert "from mine import Net  # in the folder of mine.py" in code and "result = Net.scan()" in code
