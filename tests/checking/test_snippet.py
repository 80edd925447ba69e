"""A call that goes wrong is found among the calls of a law, and its Python stands alone."""

import numpy as np
import pytest
import torch

from isoform.checking.snippet import MOST, Call, Log, Spot, locate, text
from isoform.checking.target import Target

TARGET = Target("kernels", "shift")


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
