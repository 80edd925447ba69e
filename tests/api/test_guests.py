"""Columns of other packages: a real package on the path, found by its entry points, beside our own columns."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

from isoform import cli, environment, inspection, plan
from isoform.checking.setup import right_form
from isoform.derivations import guests, registry
from isoform.properties import columns

DERIVATIONS = """
from isoform.derivations.claim import Claim, Source, variant
from isoform.derivations.kernel.formulas import Equation, Statement
from isoform.derivations.kernel.terms import scalar
from isoform.derivations.linear_attention import DECLARATIONS as THEIRS
from dataclasses import replace

x, y = scalar("x"), scalar("y")
square = Statement(Equation((x + y) * (x - y), x**2 - y**2))
misses = (
    variant(square, "sum of squares", Equation((x + y) * (x - y), x**2 + y**2)),
    variant(square, "a mixed term", Equation((x + y) * (x - y), x**2 - x * y)),
)
CLAIMS = (Claim("@name@/squares", "a difference of squares", square, (Source("Euclid, Elements, book 2"),), misses),)
DECLARATIONS = (replace(THEIRS[0], operator="@operator@"),)
"""
PROPERTIES = """
from dataclasses import replace
from isoform.properties.linear_attention import OPERATORS as THEIRS

OPERATORS = (replace(THEIRS[0], name="@operator@"),)
"""
IMPL = """
from isoform.impl.linear_attention import recurrent

FORMS = {"@operator@": (recurrent,)}
"""


@pytest.fixture
def forget(monkeypatch):
    """Leaves no trace of the guests."""

    def clear():
        for cached in (guests.guests, registry.architectures, registry.column, columns.columns):
            cached.cache_clear()

    before = set(sys.modules)
    clear()
    yield clear
    for name in set(sys.modules) - before:
        if name.startswith("guest_"):
            del sys.modules[name]
    clear()


@pytest.fixture
def install(tmp_path, monkeypatch, forget):
    """Puts a package with one column on the path; floors that are None are left out."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name, package, *, operator="guest-sum", distribution=None, **floors):
        folder = tmp_path / package
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").touch()
        for floor, text in {"derivations": DERIVATIONS, "impl": IMPL, "properties": PROPERTIES, **floors}.items():
            if text is not None:
                (folder / f"{floor}.py").write_text(text.replace("@name@", name).replace("@operator@", operator))
        info = tmp_path / f"{distribution or package}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or package}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[{guests.GROUP}]\n{name} = {package}\n")
        forget()
        return tmp_path

    return install


def test_a_guest_is_a_column_like_ours(install):
    ours = registry.own()
    install("guest-layer", "guest_package")
    assert registry.architectures() == tuple(sorted((*ours, "guest-layer")))
    assert registry.own() == ours
    assert [claim.id for claim in registry.claims(["guest-layer"])] == ["guest-layer/squares"]
    assert registry.claim("guest-layer/squares").title == "a difference of squares"
    assert [d.operator for d in registry.declarations("guest-layer")] == ["guest-sum"]
    assert "guest_layer" in plan.implemented()
    assert "guest-layer" in columns.columns()
    assert columns.operator("guest-sum").name == "guest-sum"
    assert list(plan.forms("guest_layer").FORMS) == ["guest-sum"]
    assert plan.forms("delta_rule") is import_module("isoform.impl.delta_rule")


def test_the_right_form_of_a_guest_is_its_own(install):
    install("guest-sum", "guest_package")
    (operator,) = columns.operators("guest-sum")
    assert right_form(operator) is import_module("guest_package.impl").FORMS["guest-sum"][0]


def test_a_guest_without_forms_has_no_right_form(install):
    install("guest-sum", "guest_package", impl=None)
    (operator,) = columns.operators("guest-sum")
    assert right_form(operator) is None


def test_a_certificate_names_the_package_of_a_guest(install):
    install("guest-layer", "guest_package")
    assert environment.environment()["columns"] == {"guest-layer": "guest_package 1.5"}


def test_finding_a_guest_imports_none_of_its_floors(install):
    install("guest-layer", "guest_package")
    assert "guest-layer" in registry.architectures() and "guest_layer" in plan.implemented()
    assert not [name for name in sys.modules if name.startswith("guest_package.")]


def test_a_guest_may_have_derivations_alone(install):
    install("guest-layer", "guest_package", impl=None, properties=None)
    assert "guest_layer" not in plan.implemented() and "guest-layer" not in columns.columns()
    assert registry.column("guest-layer")


def test_a_guest_is_listed_and_not_locked(install):
    install("guest-layer", "guest_package")
    assert [entry.title for entry in inspection.claims("guest-layer")] == ["a difference of squares"]
    assert len(inspection.claims()) == len(inspection.claims(*registry.own())) + 1
    ids = [claim.id for claim in registry.claims(registry.own())]
    assert "guest-layer/squares" not in ids and "delta-rule/unrolled" in ids


def refusal(capsys, *arguments):
    """The one sentence with which the command refuses."""
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    return err


def test_a_guest_with_the_name_of_our_column_is_an_error_that_names_both(install, capsys):
    install("delta-rule", "guest_package")
    err = refusal(capsys, "verify", "delta-rule")
    assert "two columns are named delta-rule" in err and "derivations/delta_rule" in err and "guest_package of guest_package 1.5" in err


def test_two_guests_with_one_name_are_an_error_that_names_both(install, capsys):
    install("guest-layer", "guest_one")
    install("guest-layer", "guest_two")
    err = refusal(capsys, "list")
    assert "two columns are named guest-layer: guest_one of guest_one 1.5, and guest_two of guest_two 1.5" in err


def test_an_operator_of_two_columns_is_an_error_that_names_both(install, capsys):
    install("guest-layer", "guest_package", operator="linear-attention")
    err = refusal(capsys, "verify", "guest-layer")
    assert "two columns declare an operator linear-attention" in err
    assert "isoform.derivations.linear_attention" in err and "guest_package.derivations" in err
    with pytest.raises(guests.ColumnError, match=r"linear-attention: linear-attention and guest-layer \(guest_package of"):
        columns.operator("linear-attention")


def test_two_claims_of_a_guest_with_one_id(install, capsys):
    install("guest-layer", "guest_package", derivations=DERIVATIONS + "CLAIMS += (Claim('@name@/squares', 'again', square, (), ()),)\n")
    err = refusal(capsys, "verify", "guest-layer")
    assert "two claims in guest_package.derivations have the id guest-layer/squares: 'a difference of squares' and 'again'" in err


@pytest.mark.parametrize(
    ("floors", "reason"),
    [
        ({"derivations": "import no_such_module"}, "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ({"derivations": None}, "cannot be loaded: ModuleNotFoundError"),
        ({"derivations": "1 / 0"}, "cannot be loaded: ZeroDivisionError"),
        ({"derivations": "CLAIM = 1"}, "has no CLAIMS in guest_package.derivations"),
        ({"derivations": DERIVATIONS.replace("@name@/", "another/")}, "the claim another/squares stands in the file of guest-layer"),
    ],
)
def test_a_guest_that_cannot_be_used_is_one_clear_sentence(install, capsys, floors, reason):
    install("guest-layer", "guest_package", **floors)
    assert reason in refusal(capsys, "verify", "guest-layer")


def test_a_package_that_is_not_there(install, capsys):
    folder = install("guest-layer", "guest_package")
    (folder / "guest_package-1.5.dist-info" / "entry_points.txt").write_text(f"[{guests.GROUP}]\nguest-layer = guest_gone.sub\n")
    guests.guests.cache_clear()
    assert "guest_gone.sub of guest_package 1.5) cannot be loaded" in refusal(capsys, "verify", "guest-layer")


@pytest.mark.parametrize("name", ["Guest", "guest_layer", "guest--layer", "-guest", "3guest"])
def test_a_bad_name_is_refused(install, capsys, name):
    install(name, "guest_package")
    assert "is no name of a column" in refusal(capsys, "list")


def test_the_command_verifies_a_guest(install):
    """In processes of their own: the workers find the guest as the command does."""
    folder = install("guest-layer", "guest_package")
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "isoform", "verify", "guest-layer", "--symbolic-only", "--json", "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (claim,) = json.loads(done.stdout)["claims"]
    assert (claim["id"], claim["verdict"], claim["near_misses"]["rejected"]) == ("guest-layer/squares", "proved", 2)
