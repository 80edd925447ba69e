"""`isoform new`: what it writes works at once, and leaves one near miss that must be filled in."""

import ast
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click
import pytest

from isoform import cli
from isoform.derivations import guests, registry
from isoform.derivations.registry import claim
from isoform.derivations.verification import verify_claim
from isoform.scaffold import column, description, place, text
from isoform.scaffold.description import ScaffoldError, describe
from isoform.scaffold.fitting import check_fits

DELTA = {
    "inputs": "q:d_k k:d_k v:d_v beta:1",
    "state": "H:d_v*d_k",
    "update": ["H - beta * (H * k - v) * k.T"],
    "read": "H * q",
    "domains": ["q, k, v: real", "beta: real, 0 <= beta |k|^2 <= 2"],
    "source": "Yang et al., Parallelizing Linear Transformers, arXiv 2406.06484",
    "where": "section 2.2",
}
SUMS = {
    **DELTA,
    "inputs": "q:d_k, k:d_k, v:d_v",
    "parameters": "a:1",
    "state": "S:d_v*d_k n:d_k",
    "update": ["S = a * S + v * k.T", "n = a * n + k"],
    "read": "over(S * q, n.T * q)",
    "domains": ["q k v: real", "a: real, 0 <= a <= 1"],
}
CELL = {
    **DELTA,
    "inputs": "x:1",
    "state": "h:1 c:1",
    "update": ["h = tanh(c) * x", "c = c + h * x"],
    "read": "h + c_before",
    "domains": ["x: real"],
}
STACKED = {
    **DELTA,
    "inputs": "x:d_k y:d_v",
    "state": "a:d_k b:d_v",
    "update": ["a = norm2(b) * x", "b = norm2(a) * y"],
    "read": "b",
    "domains": ["x, y: real"],
}


def flags(given):
    """A description as options of the command."""
    named = {"domains": "domain"}
    listed = ((key, [value] if isinstance(value, str) else value) for key, value in given.items())
    return [word for key, values in listed for value in values for word in (f"--{named.get(key, key)}", value)]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A project with one package, in which one stands."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "new-layers"\n')
    (tmp_path / "new_layers").mkdir()
    (tmp_path / "new_layers" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "new_layers"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree like ours."""
    for floor in place.FLOORS:
        (tmp_path / floor).mkdir()
    monkeypatch.setattr(place, "_ours", lambda: tmp_path)
    monkeypatch.chdir(tmp_path / "derivations")
    return tmp_path


def refusal(capsys, *arguments):
    """The one sentence with which the command refuses."""
    code = cli.main(["new", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    return err.splitlines()[-1]


def own_claim(given, name="my-layer"):
    made = column._run(text.derivations(describe(name, **given)), "isoform.derivations.my_layer", name)
    return made["OWN"], made


@pytest.mark.parametrize("given", [DELTA, SUMS, CELL, STACKED])
def test_the_near_miss_is_to_be_filled_in_and_then_the_claim_holds(given):
    mine, made = own_claim(given)
    result = verify_claim(mine)
    assert result.verdict == "proved" and not result.holds
    assert [(miss.name, miss.rejected) for miss in result.near_misses] == [
        ("the token is left out", True),
        ("FILL IN: the mistake", False),
    ]
    source = text.derivations(describe("my-layer", **given))
    at = source.index("MISTAKE = ")
    filled = source[:at] + source[at:].replace("[t - 1]", "[t - 2]", 1)
    assert filled != source
    namespace = column._run(filled, "isoform.derivations.my_layer", "my-layer")
    assert verify_claim(namespace["OWN"]).holds
    assert made["CLAIMS"][-1] is mine and len(made["CLAIMS"]) > 1
    assert {c.id.partition("/")[0] for c in made["CLAIMS"]} == {"my-layer"}


def test_it_writes_into_the_package_that_one_is_in(package, capsys):
    assert cli.main(["new", "my-layer", *flags(DELTA)]) == 0
    out = capsys.readouterr().out
    assert '[project.entry-points."isoform.columns"]\nmy-layer = "new_layers.my_layer"' in out
    assert "identity plus rank one" in out and "my-layer/chunkwise" in out
    written = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    assert written == {"__init__.py", *(f"my_layer/{name}.py" for name in ("__init__", "derivations", "impl", "properties"))}
    for path in package.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))
    before = {path: path.read_text() for path in package.rglob("*.py")}
    assert "is already there, and nothing is overwritten" in refusal(capsys, "my-layer", *flags(DELTA))
    assert {path: path.read_text() for path in package.rglob("*.py")} == before


def test_what_it_wrote_is_a_column(package, capsys, monkeypatch):
    assert cli.main(["new", "my-layer", *flags(DELTA), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    entry = found["entry_point"].splitlines()[1]
    info = package.parent / "new_layers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: new-layers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[isoform.columns]\n" + entry.replace('"', "") + "\n")
    monkeypatch.syspath_prepend(str(package.parent))
    for cached in (guests.guests, registry.architectures, registry.column):
        cached.cache_clear()
    try:
        assert [c.id for c in registry.column("my-layer")] == found["claims"]
        (operator,) = import_module("new_layers.my_layer.properties").OPERATORS
        forms = import_module("new_layers.my_layer.impl").FORMS
        assert operator.name == "my-layer" and list(forms) == ["my-layer"]
    finally:
        monkeypatch.undo()
        for name in [name for name in sys.modules if name.startswith("new_layers")]:
            del sys.modules[name]
        for cached in (guests.guests, registry.architectures, registry.column):
            cached.cache_clear()


def test_it_writes_onto_the_floors_of_our_tree(tree, capsys):
    assert cli.main(["new", "my-layer", *flags(DELTA)]) == 0
    assert "entry-points" not in capsys.readouterr().out
    assert {path.relative_to(tree).as_posix() for path in tree.rglob("*.py")} == {f"{floor}/my_layer.py" for floor in place.FLOORS}
    assert "from isoform.derivations.my_layer import DECLARATION" in (tree / "properties" / "my_layer.py").read_text()


@pytest.mark.parametrize("floor", place.FLOORS)
@pytest.mark.parametrize("there", ["my_layer.py", "my_layer/__init__.py"])
def test_nothing_of_our_tree_is_overwritten(tree, capsys, floor, there):
    path = tree / floor / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("kept")
    assert "is already there" in refusal(capsys, "my-layer", *flags(DELTA))
    assert [p.read_text() for p in tree.rglob("*.py")] == ["kept"]


@pytest.mark.parametrize("name", ["My-layer", "my_layer", "1st", "my--layer", "a/b", "class", "", "é"])
def test_a_bad_name_is_refused(package, capsys, name):
    assert "is no name of a column" in refusal(capsys, name, *flags(DELTA))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("delta-rule", "there is already a column delta-rule"), ("lti", "state-space has already an operator lti")],
)
def test_a_name_that_is_taken_is_refused(package, capsys, name, reason):
    assert reason in refusal(capsys, name, *flags(DELTA))
    assert list(package.rglob("*.py")) == [package / "__init__.py"]


@pytest.mark.parametrize("missing", ["inputs", "state", "update", "read", "domains", "source", "where"])
def test_everything_is_needed(package, capsys, missing):
    given = {key: value for key, value in DELTA.items() if key != missing}
    assert f"my-layer needs --{'domain' if missing == 'domains' else missing};" in refusal(capsys, "my-layer", *flags(given))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source": "  "}, "needs --source"),
        ({"where": " "}, "needs --where"),
        ({"inputs": "q"}, "--inputs says 'q'; a name and its size are needed"),
        ({"inputs": "q:2k"}, "a name and its size are needed"),
        ({"inputs": "q:s"}, "--inputs has a size 's', and that name is taken"),
        ({"inputs": "q:d_k*d_k*d_k"}, "a name and its size are needed"),
        ({"inputs": "lambda:d_k"}, "the name 'lambda' is taken"),
        ({"inputs": "exp:d_k"}, "the name 'exp' is taken"),
        ({"inputs": "t:1"}, "the name 't' is taken"),
        ({"inputs": "q:d_k q:d_k"}, "'q' is named twice"),
        ({"state": "q:d_k"}, "'q' is named twice"),
        ({"inputs": "q:d_k d_k:1"}, "'d_k' is a name and a size"),
        ({"inputs": "OWN:d_k"}, "the name 'OWN' is taken"),
        ({"state": "H:d_v*d_k n:d_k"}, "--update is needed once for each state, as --update 'H = …'"),
        ({"update": ["H +"]}, "is no formula"),
        ({"update": ["H = H; import os"]}, "is no formula"),
        ({"update": ["H + w * k.T"]}, "the update of H uses 'w', which is no input, parameter, state or size"),
        ({"read": "__import__('os')"}, "uses '__import__'"),
        ({"read": "H_after * q"}, "uses 'H_after'"),
        ({"domains": ["q, k, v: real"]}, "--domain is needed for beta"),
        ({"domains": ["w: real"]}, "--domain says 'w: real'"),
        ({"domains": ["q:"]}, "--domain says 'q:'"),
    ],
)
def test_a_description_that_is_wrong_is_refused_in_a_sentence(change, reason):
    with pytest.raises(ScaffoldError) as refused:
        describe("my-layer", **{**DELTA, **change})
    assert reason in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"update": ["H + k * v.T"]},
        {"read": "q * H"},
        {"update": ["H + k"]},
        {"domains": ["q, k, v: real", "beta: whatever"]},
        {"read": "H.nonsense"},
    ],
)
def test_what_does_not_fit_together_is_refused_and_nothing_is_written(package, capsys, change):
    assert "my-layer is no layer as described: " in refusal(capsys, "my-layer", *flags({**DELTA, **change}))
    assert list(package.rglob("*.py")) == [package / "__init__.py"]


def test_the_example_of_the_docs_works(package, capsys):
    text = (Path(__file__).parents[2] / "docs" / "adding-an-architecture.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^isoform (new (?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert cli.main(shlex.split(command.replace("\\\n", " "))) == 0
    out = capsys.readouterr().out
    assert "my-layer/one-token" in out
    (entry,) = re.findall(r"^```toml\n(.*?)\n```", text, re.MULTILINE | re.DOTALL)
    assert entry.replace("my_package", "new_layers") in out


def test_without_a_package_there_is_no_place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "is in no package" in refusal(capsys, "my-layer", *flags(DELTA))
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert "must have one package to write into, and has none" in refusal(capsys, "my-layer", *flags(DELTA))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    assert "and has one, two" in refusal(capsys, "my-layer", *flags(DELTA))
    (tmp_path / "pyproject.toml").write_text("[project")
    assert "cannot be read" in refusal(capsys, "my-layer", *flags(DELTA))


def test_a_package_inside_a_package(tmp_path):
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    found = place.find("my_layer", inner)
    assert found.package == "outer.inner.my_layer" and found.files["impl"] == inner / "my_layer" / "impl.py"


ASKED = {
    "Inputs of a token": ["q", "q:d_k k:d_k v:d_v a:1"],
    "Parameters": ["a:1", ""],
    "State, with": ["S:s", "S:d_v*d_k n:d_k"],
    "Update of the state S": ["a * S + v * k", "a * S + w * k.T", "a * S + v * k.T"],
    "Update of the state n": ["a * n +", "a * n + v", "a * n + k"],
    "What is read": ["over(S * q, n.T * q)"],
    "Where q lies": [""],
    "Where k lies": ["whatever", ""],
    "Where v lies": ["real, prime", ""],
    "Where a lies": ["real, 0 <= a |w|^2 <= 1", "real, 0 <= a <= 1"],
    "Decays that forms": ["w=g", "a=q", "a=g"],
    "Source": ["X et al., Y"],
    "Equation or section": ["eq. 3"],
}
"""Answers by the beginnings of the questions, of which all but the last are refused."""


def test_on_a_terminal_it_asks_again_until_an_answer_can_be(package, capsys, monkeypatch):
    from isoform.commands import new

    refused = []

    def answer(question, *, value_proc, default=None, **how):
        (answers,) = (a for q, a in ASKED.items() if question.startswith(q))
        for given in answers[:-1]:
            with pytest.raises(click.UsageError) as error:
                value_proc(given or default)
            refused.append(str(error.value))
        return value_proc(answers[-1] or default)

    monkeypatch.setattr(new, "_terminal", lambda: True)
    monkeypatch.setattr("click.prompt", answer)
    assert cli.main(["new", "my-layer", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0].endswith("my_layer/derivations.py")
    assert '"q": "real"' in (package / "my_layer" / "derivations.py").read_text()
    assert 'logs={"a": "g"}' in (package / "my_layer" / "properties.py").read_text()
    assert len(refused) == sum(len(a) - 1 for a in ASKED.values())
    assert all("\n" not in r and r.count(". ") == 0 for r in refused), refused
    assert refused[3] == "the answer does not fit together: cannot multiply d_v x 1 by a d_k x 1 term: k after v"


def test_what_cannot_be_is_said_before_anything_is_asked(package, tmp_path, capsys, monkeypatch):
    from isoform.commands import new

    monkeypatch.setattr(new, "_terminal", lambda: True)
    monkeypatch.setattr("click.prompt", lambda *given, **how: pytest.fail("a question was asked"))
    assert "there is already a column delta-rule" in refusal(capsys, "delta-rule")
    monkeypatch.chdir(tmp_path.parent)
    assert "is in no package" in refusal(capsys, "my-layer")


@pytest.mark.deep
def test_on_a_real_terminal(package):
    """The answers are typed one by one, a question being there; what is written is read back."""
    answers, shown, sent = [a for given in ASKED.values() for a in given], b"", 0
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "isoform", "new", "my-layer"])
    with suppress(OSError):  # the end of a terminal
        while data := os.read(terminal, 4096):
            shown += data
            if shown.endswith(b": ") and sent < len(answers):
                os.write(terminal, answers[sent].encode() + b"\n")
                sent += 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown.decode()
    assert sent == len(answers) and b"Traceback" not in shown
    assert shown.count(b"Error: ") == sum(len(a) - 1 for a in ASKED.values())
    assert b"wrote " in shown and (package / "my_layer" / "impl.py").exists()


def test_quotes_in_a_source_stay_text():
    odd = 'A "B" \\ C, """Title""", arXiv 1234.56789'
    source = text.derivations(describe("my-layer", **{**DELTA, "source": odd}))
    assert column._run(source, "m", "my-layer")["DECLARATION"].source == odd


def test_a_claim_without_source_or_near_misses_is_not_finished():
    known = claim("delta-rule/three-forms")
    for change, reason in (
        ({"sources": ()}, "a claim needs a source"),
        ({"near_misses": ()}, "a claim needs two near misses, this one has 0"),
    ):
        result = verify_claim(replace(known, **change))
        assert not result.holds and reason in result.reason


def test_without_options_and_without_a_terminal_it_says_what_it_needs(package):
    command = [sys.executable, "-m", "isoform", "new", "my-layer"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=package, check=False)
    assert done.returncode == 2 and "needs --inputs, --state, --update" in done.stderr
    assert Path(package / "my_layer").exists() is False


def test_every_function_of_a_formula_is_there():
    assert {"exp", "sigmoid", "tanh", "over"} <= description.functions()
    assert not description.functions() & description.TERMS


def test_a_formula_may_use_the_sizes_that_the_description_names():
    given = {**DELTA, "update": ["H * (Eye(d_k) - beta * k * k.T) + over(1, 1 + norm2(k)) * v * k.T"], "read": "Eye(d_v) * H * q"}
    mine, made = own_claim(given)
    assert verify_claim(mine).verdict == "proved"
    assert verify_claim(made["CLAIMS"][0]).holds
    check_fits("the answer", {"H": "d_v*d_k", "k": "d_k"}, "d_v*d_k", "H * Eye(d_k) / Ind(d_k)")
    with pytest.raises(ScaffoldError, match="uses 'd_q', which is no input, parameter, state or size; there are H, H_before, beta, d_k"):
        describe("my-layer", **{**given, "read": "Eye(d_q) * H * q"})


FADING = {
    **DELTA,
    "inputs": "q:d_k k:d_k v:d_v a:d_k",
    "update": ["H * Diag(a) + v * k.T"],
    "domains": ["q, k, v: real", "a: real, 0 <= a_i <= 1"],
}


def test_a_decay_may_be_given_by_its_logarithm():
    written = text.properties(describe("fading", **FADING, logs=["a=g"]), place.Place({}, "lab.fading"))
    assert 'operator_of(DECLARATION, logs={"a": "g"})' in written
    assert "operator_of(DECLARATION)" in text.properties(describe("fading", **FADING), place.Place({}, "lab.fading"))


@pytest.mark.parametrize(
    ("logs", "reason"),
    [(["b=g"], "an input and the name of the argument"), (["a"], "an input and the name of the argument"), (["a=q"], "is taken")],
)
def test_a_logarithm_that_cannot_be_is_refused(logs, reason):
    with pytest.raises(ScaffoldError, match=reason):
        describe("fading", **FADING, logs=logs)
