"""The `isoform` command: output, streams and exit codes."""

import json
import os
import pty
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

from isoform import cli
from isoform.derivations import lock


@pytest.fixture
def run(house, capsys):
    """Run the command here, over the fake claims; returns (exit code, stdout, stderr)."""

    def run(*arguments):
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


def shell(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "isoform", *arguments], capture_output=True, text=True, check=False, **options)


def test_verify_prints_claims_laws_and_counts(run):
    code, out, err = run("verify", "alpha/holds", "beta-net")
    assert (code, err) == (0, "")
    for text in ("alpha/holds", "proved", "all sizes", "1/1", "kernel, evaluate", "alpha.recurrent", "seed 0", "exit 0"):
        assert text in out
    assert "claims: 2 = 1 proved, 0 qualified, 1 refuted, 0 unknown" in out
    assert "law checks: 2 = 1 holds, 0 violated, 1 not-applicable, 0 unverified" in out


@pytest.mark.parametrize(
    ("id", "code", "text"),
    [
        ("alpha/differs", 1, "violated  alpha/differs: refuted, where proved is expected"),
        ("alpha/unknown", 1, "violated  alpha/unknown: unknown, where proved is expected: no method applies"),
        ("alpha/crashes", 4, "failed  alpha/crashes: ValueError: lost its way"),
    ],
)
def test_verify_says_what_failed(run, id, code, text):
    found, out, _ = run("verify", id)
    assert found == code
    assert text in out and f"exit {code}" in out


def test_a_remark_on_a_claim_that_holds_is_shown(run, house, monkeypatch):
    monkeypatch.setattr("isoform.plan.prove", house.prove_with_remark)
    code, out, _ = run("verify", "alpha/holds")
    assert code == 0
    assert "note  alpha/holds: no near miss drops the assumption x" in out


def test_verify_json_is_all_there_is_on_stdout(run):
    code, out, err = run("verify", "alpha", "--json", "--time-limit", "0.5", "--seed", "7")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert (found["schema"], found["seed"], found["version"]) == (1, 7, version("isoform"))
    assert found["summary"] == {"proved": 2, "qualified": 0, "refuted": 1, "unknown": 3, "total": 6}
    assert {failure["where"] for failure in found["failures"]} == {claim["id"] for claim in found["claims"]} - {"alpha/holds"}


@pytest.mark.parametrize("command", ["verify", "show", "trust"])
def test_an_unknown_id_gets_the_nearest_match(run, command):
    code, out, err = run(command, "alpha/hold")
    assert (code, out) == (2, "")
    assert err == "isoform: there is no claim or architecture 'alpha/hold'; did you mean 'alpha/holds'?\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("verify", "--level", "slow"),
        ("verify", "--jobs", "0"),
        ("verify", "--time-limit", "0"),
        ("verify", "--time-limit", "nan"),
        ("show",),
        ("show", "alpha"),
        ("show", "alpha/holds", "--json", "--latex"),
    ],
)
def test_usage_errors(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("isoform: ") and err.endswith("\n") and err.count("\n") == 1


def test_isoform_itself_failing_is_one_clear_line(run, calls, monkeypatch):
    monkeypatch.setattr("isoform.plan.make", lambda *args, **kwargs: calls.fail("out of luck"))
    assert run("verify") == (4, "", "isoform: isoform itself failed: ValueError: out of luck\n")
    code, _, err = run("--traceback", "verify")
    assert code == 4 and "Traceback" in err


def test_an_interrupt_outside_a_run(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("isoform.plan.make", interrupt)
    code, out, err = run("verify")
    assert (code, out, err.strip()) == (130, "", "isoform: interrupted")


def test_show_reads_like_a_paper(run):
    code, out, _ = run("show", "alpha/holds")
    assert code == 0
    sections = ("Definitions", "Statement", "Assumptions", "Sources", "Derivation", "Near misses", "Evidence")
    assert sorted(sections, key=out.index) == list(sections)
    for text in (
        "H_t = Σ v_j k_jᵀ",
        "A. Author, eq. 3 (index shifted)",
        "H_0 = 0, H_t = H_{t−1} + v_t k_tᵀ",
        "  ∧ Q = K",
        "1. Base",
        "Both sides are zero.  [normal form, by 0 = 0 by normal form]",
        "rejected: exponent off by one",
        "instead: H_t = 0",
        "3 ≠ 4  [exact, kernel, evaluate]",
    ):
        assert text in out


def test_a_chain_gives_every_term_once(run):
    lines = [line.strip() for line in run("show", "alpha/holds")[1].splitlines()]
    start = lines.index("2. The update")
    following = ["H_t", "= a  [normal form]", "3. The state before", "= b  [normal form, by induction hypothesis]"]
    assert lines[start + 1 : start + 5] == following


def test_show_tells_of_a_near_miss_that_stayed(run):
    code, out, _ = run("show", "alpha/kept-near-miss")
    assert code == 1
    assert "NOT REJECTED: wrong sign" in out


def test_show_latex(run):
    code, out, _ = run("show", "alpha/holds", "--latex")
    assert code == 0
    assert r"\sum_j v_j k_j^T" in out and r"50\% of a title" in out
    shown = [line.strip() for line in out.splitlines()]
    assert shown.index("H_{0} = 0") < shown.index(r"\emph{Statement}") < shown.index("H_t = a_l") < shown.index("{} = b_l")


def test_show_json(run):
    code, out, _ = run("show", "alpha/holds", "--json")
    found = json.loads(out)
    assert (code, found["schema"], found["id"]) == (0, 1, "alpha/holds")
    assert found["steps"][0]["method"] == "normal form"
    assert found["near_misses"]["list"][0]["counterexample"] == "T = 2: 3 ≠ 4"
    assert found["near_misses"]["list"][0]["changes"] == ["instead: H_t = 0"]
    assert found["near_misses"]["list"][0]["kind"] == "exact"
    assert found["definitions"] == [{"text": "H_0 = 0, H_t = H_{t−1} + v_t k_tᵀ", "latex": "H_{0} = 0"}]
    assert [(step["continues"], step["sides"]) for step in found["steps"]] == [(False, []), (False, ["H_t", "a"]), (True, ["a", "b"])]


def test_show_of_a_crash_is_a_failure_of_isoform(run):
    code, out, err = run("show", "alpha/crashes")
    assert (code, out) == (4, "")
    assert "lost its way" in err and len(err.splitlines()) == 1


def test_show_of_an_undecided_claim(run):
    code, out, _ = run("show", "alpha/slow", "--time-limit", "0.3")
    assert code == 1
    assert "exceeded its time limit of 0.3 s" in out


def test_trust_names_engines_methods_and_what_is_trusted(run):
    code, out, _ = run("trust", "alpha/holds")
    assert code == 0
    for text in (
        "Base: normal form, by 0 = 0 by normal form",
        "proved: kernel (1)",
        "certified: evaluate (2)",
        "not formally verified",
        "SymPy",
        "python-flint",
    ):
        assert text in out
    code, out, _ = run("trust", "alpha/holds", "--json")
    found = json.loads(out)
    assert (found["schema"], found["methods"], found["assumed"]) == (1, ["normal form"], [])


def test_list_and_lock(run):
    lock.PATH.unlink()
    code, out, err = run("lock", "--check")
    assert (code, out) == (1, "") and "run `isoform lock`" in err
    assert run("lock")[0] == 0
    assert run("lock", "--check") == (0, "7 claims, 0 problems\n", "")
    code, out, _ = run("list", "beta-net", "--json")
    assert code == 0
    assert json.loads(out)["claims"] == [{"id": "beta-net/refuted", "version": 1, "title": "A title"}]
    assert "alpha/holds" in run("list")[1]
    lock.PATH.write_text(lock.PATH.read_text().replace("a" * 64, "b" * 64, 1))
    code, out, _ = run("lock", "--check")
    assert code == 1 and "the statement changed" in out
    code, _, err = run("lock")
    assert code == 1 and "the statement changed" in err


def test_the_module_is_the_command():
    assert shell("--version").stdout == f"isoform {version('isoform')}\n"


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json")])
def test_a_closed_pipe_is_no_violation(arguments, house, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "isoform", *arguments], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (4, "isoform: the output was closed before all was written\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("show", "alpha/holds")])
def test_a_terminal_without_the_signs_gets_their_escapes(arguments, encoding, faked):
    def run(encoding):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        return subprocess.run([sys.executable, faked, *arguments], capture_output=True, env=environment, encoding=encoding, check=False)

    done = run(encoding)
    assert (done.returncode, done.stderr) == (0, "")
    if "--json" in arguments:
        assert json.loads(done.stdout) == json.loads(run("utf-8").stdout)
    if "show" in arguments:
        assert "\\u03a3" in done.stdout


def test_without_an_output_there_is_no_success(run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["list"]) == 4


def test_help_names_every_command_and_exit_code():
    out = shell("--help").stdout
    assert all(f"  {name} " in out for name in cli.COMMANDS)
    assert all(f" {code} " in " ".join(out.split()) for code in (0, 1, 2, 3, 4, 130))


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_only_on_a_terminal_that_wants_it(environment, coloured):
    assert (b"\x1b[3" in on_terminal(environment)) is coloured
    assert "\x1b" not in shell("list").stdout


def on_terminal(environment):
    main, side = pty.openpty()
    base = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    code = "from isoform.tables import console, Text; console().print(Text('x', style='red'))"
    subprocess.run([sys.executable, "-c", code], stdout=side, check=True, env={**base, "TERM": "xterm-256color", **environment})
    os.close(side)
    out = os.read(main, 10_000)
    os.close(main)
    return out


def test_ctrl_c_prints_what_there_is(faked):
    """A real SIGINT to a real run over the fake claims."""
    arguments = ("verify", "alpha/holds", "alpha/slow", "--jobs", "1")
    process = subprocess.Popen([sys.executable, faked, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "slow" not in (line := process.stderr.readline()):
        assert line, "the run ended before the slow claim began"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "alpha/slow: not run: interrupted" in out and "1 proved" in out
