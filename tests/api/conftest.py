"""Fakes for the face of the package: workers import them by name, through the parent's path."""

from importlib import import_module
from pathlib import Path

import pytest

from isoform import plan
from isoform.derivations import lock


@pytest.fixture
def fake_path(monkeypatch):
    """Makes the fakes importable, here and in the workers."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fakes"))


@pytest.fixture
def calls(fake_path):
    """Calls that fail in every way."""
    return import_module("isoform_fake_calls")


@pytest.fixture
def fakes(fake_path):
    """Claims with given results."""
    return import_module("isoform_fakes")


@pytest.fixture
def house(fakes, monkeypatch, tmp_path):
    """A house in which the fake claims are all the claims, and alpha is the only column with code."""
    monkeypatch.setattr("isoform.derivations.registry.claims", lambda selection=(): fakes.CLAIMS)
    monkeypatch.setattr(lock, "PATH", tmp_path / "claims.lock")
    lock.write(fakes.CLAIMS)
    monkeypatch.setattr(plan, "warm_up", fakes.warm_up)
    monkeypatch.setattr(plan, "prove", fakes.prove)
    monkeypatch.setattr(plan, "cross_check", fakes.cross_check)
    monkeypatch.setattr(plan, "implemented", lambda: frozenset({"alpha"}))
    return fakes
