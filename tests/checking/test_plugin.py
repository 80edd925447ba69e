"""One pytest item a law: what passes, fails, is skipped or expected, in other people's projects."""

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from isoform.checking import items
from isoform.checking.items import Bench, Item, laws_of
from isoform.checking.marking import Conformance
from isoform.checking.report import LawReport

LAWS = "('layout', 'split-and-resume', 'forms-agree')"
KERNELS = '''
"""A delta rule, right and wrong."""
import torch

def right(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    groups, scale = v.shape[2] // q.shape[2], q.shape[-1] ** -0.5 if scale is None else scale
    wide = torch.promote_types(v.dtype, torch.float32)
    q, k, beta, x = (a.to(wide) for a in (q * scale, k, beta, v))
    q, k = (a.repeat_interleave(groups, 2) for a in (q, k))
    s = x.new_zeros(len(v), v.shape[2], k.shape[-1], v.shape[-1]) if initial_state is None else initial_state.clone()
    out = []
    for t in range(v.shape[1]):
        error = x[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], s)
        s = s + torch.einsum("bhk,bhv->bhkv", beta[:, t, :, None] * k[:, t], error)
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, t], s))
    return (torch.stack(out, 1) if out else x * 1).to(v.dtype), s if output_final_state else None

def forgetful(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    return right(q, k, v, beta, scale, None, output_final_state)

def hanging(q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
    while v.shape[1] > 1:
        pass
    return right(q, k, v, beta, scale, initial_state, output_final_state)
'''
CASE = {
    "operator": "delta-rule",
    "sizes": [["b", 1], ["t", 3], ["h", 1], ["groups", 1], ["k", 2], ["v", 3], ["chunk", 64]],
    "seed": 3,
    "dtype": "float32",
    "scale": "small",
    "flags": ["start"],
}
TESTS = f'''
import isoform
import pytest
import kernels

@isoform.conformance("delta-rule", level="quick", laws={LAWS})
def test_right():
    return kernels.right

@isoform.conformance("delta-rule", level="quick", laws={LAWS})
def test_forgetful():
    return kernels.forgetful

@isoform.conformance("delta-rule", level="quick", laws=("layout",), call_limit=0.25)
def test_hanging():
    return "kernels:hanging"

@isoform.conformance("delta-rule", level="quick", laws=("layout", "split-and-resume"), expected="known.toml")
def test_known():
    return lambda q, k, v, beta, scale=None, initial_state=None, output_final_state=False: kernels.forgetful(
        q, k, v, beta, scale, initial_state, output_final_state
    )

@isoform.conformance("delta-rule", laws=("layout",))
def test_nothing():
    kernels.right

class TestMethods:
    @pytest.fixture
    def kernel(self):
        return lambda q, k, v, beta: kernels.right(q, k, v, beta)[0]

    @pytest.mark.parametrize("size", [16, 64])
    @isoform.conformance("delta-rule", level="deep", laws=("layout",))
    def test_method(self, kernel, size):
        return kernel
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Somebody's project."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (folder / "test_kernels.py").write_text(TESTS, encoding="utf-8")
    entry = 'reason = "the start is not read"\nlink = "https://example.org/1"\nsince = 2026-01-01\nexpires = 2999-01-01\n'
    (folder / "known.toml").write_text(f"[[expected]]\nlaw = 'split-and-resume'\n{entry}witness = '{json.dumps(CASE)}'\n", encoding="utf-8")
    return folder


def pytest_in(folder, *arguments):
    """Run pytest as its users do; the environment of this run is not theirs."""
    command = [sys.executable, "-m", "pytest", "-rA", "--import-mode=importlib", "-p", "no:randomly", *arguments]
    environment = {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False).stdout


@pytest.fixture(scope="module")
def seen(project):
    """What one run of all tests prints, at the level that the command line sets."""
    return pytest_in(project, "--isoform-level=quick", "--isoform-seed=1")


def outcomes(output):
    """The outcome of every item, by id."""
    return {name: word for word, name in re.findall(r"^(PASSED|FAILED|XFAIL|SKIPPED) \S*::(\S+)", output, re.MULTILINE)}


def test_every_law_is_an_item_with_its_own_outcome(seen):
    assert outcomes(seen) == {
        "test_right[layout]": "PASSED",
        "test_right[split-and-resume]": "PASSED",
        "test_forgetful[layout]": "FAILED",
        "test_forgetful[split-and-resume]": "FAILED",
        "test_hanging[layout]": "FAILED",
        "test_known[layout]": "FAILED",
        "test_known[split-and-resume]": "XFAIL",
        "test_nothing[layout]": "FAILED",
        "test_method[layout-16]": "PASSED",
        "test_method[layout-64]": "PASSED",
    }
    assert re.search(r"SKIPPED \[2\].*: not applicable: there is no other form", seen)


def test_a_violation_is_said_in_words_and_runs_again(seen, project):
    text = seen.partition("test_forgetful[split-and-resume] _")[2].partition("\n____")[0]
    assert "kernels:forgetful as delta-rule violates split-and-resume: a sequence cut anywhere" in text
    assert "Traceback" not in seen and "items.py" not in seen
    assert "from kernels import forgetful" in text and "pytest 'test_kernels.py::test_forgetful[split-and-resume]'" in text
    (path,) = re.findall(r"isoform replay (\S+)", text)
    content = json.loads((project / path).read_text(encoding="utf-8"))
    assert content["law"] == "split-and-resume" and content["seed"] == 1 and content["level"] == "quick"


def test_a_hang_and_a_test_that_returns_nothing_are_said_in_a_sentence(seen):
    assert re.search("smallest: the call did not return within (0.25 s of its own time|0.75 s)", seen)
    assert "the test returned None: it returns the kernel, or its name" in seen
    assert "expected: the start is not read (https://example.org/1), since 2026-01-01, until 2999-01-01" in seen


def test_the_table_names_laws_and_verdicts(seen):
    table = seen.partition("isoform: laws and verdicts")[2]
    rows = re.findall(r"^  (\S+) +(holds|violated|not applicable|expected|unusable)", table, re.MULTILINE)
    assert Counter(verdict for _, verdict in rows) == {"holds": 4, "violated": 4, "not applicable": 2, "expected": 1, "unusable": 1}
    assert "\ntest_kernels.py::TestMethods::test_method[64]\n" in table


@pytest.mark.deep
def test_with_xdist_the_outcomes_and_the_table_are_the_same(project):
    output = pytest_in(project, "-n", "2", "--isoform-level=quick", "-k", "(layout and right) or (known and resume) or forms-agree")
    assert Counter(outcomes(output).values()) == {"PASSED": 1, "XFAIL": 1}
    rows = re.findall(r"^  (\S+) +(holds|not applicable|expected)", output.partition("isoform: laws and verdicts")[2], re.MULTILINE)
    assert sorted(rows) == [("forms-agree", "not applicable")] * 2 + [("layout", "holds"), ("split-and-resume", "expected")]


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (Conformance("delta-rul", {}), "there is no operator 'delta-rul'; did you mean 'delta-rule'?"),
        (Conformance("delta-rule", {"laws": ("layot",)}), "there is no law 'layot'; did you mean 'layout'?"),
        (Conformance("delta-rule", {"levle": "quick"}), "isoform.conformance has no such option"),
        (Conformance("delta-rule", {"level": "quik"}), "there is no level 'quik'"),
        (Conformance("delta-rule", {}, "none.toml"), "there is no file"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(tmp_path, held, says):
    laws, wrong = laws_of(held, {}, tmp_path)
    assert not laws and wrong.startswith(says) and "\n" not in wrong


def test_it_is_an_error_of_collection(tmp_path):
    test = 'import isoform\n\n@isoform.conformance("delta-rul")\ndef test_it():\n    return None\n'
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    output = pytest_in(tmp_path)
    assert "test_it: there is no operator 'delta-rul'" in output and "ERROR test_it.py" in output and "Traceback" not in output


def test_an_unverified_law_fails_and_says_so(monkeypatch, tmp_path):
    class Undecided:
        def __init__(self, plan, function=None):
            self.plan = plan

        def law(self, name):
            return LawReport(name, "", "unverified", detail="all 3 comparisons are blind")

        def close(self):
            """Nothing runs."""

    monkeypatch.setattr(items, "Session", Undecided)
    found = Bench().hold(Item("x", "layout", Conformance("delta-rule", {}), {}, tmp_path, None), lambda q: q)
    assert (found.verdict, found.text) == ("unverified", "unverified: all 3 comparisons are blind")


def test_the_plugin_is_light():
    heavy = "[n for n in ('torch', 'sympy', 'numpy', 'scipy', 'hypothesis', 'flint', 'rich', 'click') if n in sys.modules]"
    code = f"import isoform.plugin, isoform, sys; isoform.conformance; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
