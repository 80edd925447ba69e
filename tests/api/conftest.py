"""Fakes for the face of the package: workers import them by name, through the parent's path."""

import sys
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


@pytest.fixture
def faked(house, tmp_path):
    """A script that is the command over the fake claims, says on stderr what begins and ends, and takes an interrupt."""
    script = tmp_path / "run.py"
    script.write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background of a shell ignores it\n"
        f"sys.path[:] = {sys.path!r}\n"
        "import isoform_fakes as fakes\n"
        "from isoform import cli, plan\n"
        "import isoform.derivations.registry as registry\n"
        "registry.claims = lambda selection=(): fakes.CLAIMS\n"
        "plan.warm_up, plan.prove, plan.cross_check, plan.implemented = fakes.warm_up, fakes.prove, fakes.cross_check, frozenset\n"
        "import isoform.tables as tables, contextlib\n"
        "tables.progress = lambda plan: contextlib.nullcontext(lambda event: print(event.key, file=sys.stderr, flush=True))\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    return str(script)
