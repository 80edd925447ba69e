"""`isoform report` and `isoform.report`: what they refuse, what they write, and how they end."""

import json

import pytest

import isoform
from isoform import book, certificate, cli, runner, tables
from isoform.book import folder
from isoform.derivations.registry import claim
from isoform.exits import Exit

from .conftest import make


@pytest.fixture
def run(capsys):
    """Run the command; returns (exit code, stdout, stderr)."""

    def run(*arguments):
        code = cli.main(["report", *map(str, arguments)])
        return (code, *capsys.readouterr())

    return run


def test_a_real_run_is_written(run, tmp_path):
    code, out, err = run(tmp_path / "site", "delta-rule/unrolled", "--symbolic-only", "--jobs", "1")
    assert (code, err) == (0, "")
    assert "claims: 1 = 1 proved" in out and out.splitlines()[-1] == str(tmp_path / "site" / "index.html")
    page = (tmp_path / "site" / "claims" / "delta-rule" / "unrolled.html").read_text("utf-8")
    assert "Yang et al." in page and "They were not held against its laws in this run." in page


@pytest.fixture
def ran(monkeypatch, report):
    """Runs that end at once with a given report."""

    def give(found):
        monkeypatch.setattr(tables, "watched", lambda plan: found)
        monkeypatch.setattr(runner, "run", lambda plan: found)

    give(report)
    return give


def test_a_run_that_fails_is_written_and_keeps_its_code(run, ran, report, tmp_path):
    code, out, _ = run(tmp_path, "delta-rule")
    assert code == report.exit_code == 1
    assert "violated  delta-rule.chunkwise / forms-agree" in out and (tmp_path / "index.html").exists()


def test_an_interrupted_run_is_written_as_far_as_it_came(run, ran, results, tmp_path):
    missing = runner.unknown(claim("delta-rule/wy"), "not run: interrupted", 0.0)
    ran(make([results[0], missing], state="interrupted"))
    assert run(tmp_path / "a", "delta-rule")[0] == Exit.INTERRUPTED
    assert "not run: interrupted" in (tmp_path / "a" / "claims" / "delta-rule" / "wy.html").read_text("utf-8")
    with pytest.raises(KeyboardInterrupt):
        isoform.report(tmp_path / "b", "delta-rule")
    assert (tmp_path / "b" / "index.html").exists()


def test_a_certificate_says_what_runs_and_is_compared(run, ran, report, tmp_path):
    certificate.write(report, tmp_path / "c.json")
    assert run(tmp_path / "site", "--from", tmp_path / "c.json", "delta-rule")[0] == 1
    code, _, err = run(tmp_path / "site", "--from", tmp_path / "c.json", "--seed", "3")
    assert code == 2 and "--seed and --from exclude each other" in err
    altered = (tmp_path / "c.json").read_text("utf-8").replace("H_t", "H_s")
    (tmp_path / "c.json").write_text(altered, "utf-8")
    code, _, err = run(tmp_path / "other", "--from", tmp_path / "c.json")
    assert code == 1 and err and not (tmp_path / "other").exists()


def test_json_is_the_json_alone(run, ran, report, tmp_path):
    code, out, _ = run(tmp_path, "--json", "delta-rule")
    found = json.loads(out)
    assert (code, found["schema"], found["index"]) == (1, 1, str(tmp_path / "index.html"))
    assert found["summary"] == report.summary and len(found["failures"]) == 1
    assert found["pages"] == len(list(tmp_path.rglob("*.html")))


def test_what_is_returned_is_the_report_of_the_run(ran, report, tmp_path):
    assert isoform.report(str(tmp_path / "site"), "delta-rule") is report


def test_a_second_run_replaces_the_first(ran, results, tmp_path):
    isoform.report(tmp_path, "delta-rule")
    ran(make(results[:1]))
    isoform.report(tmp_path, "delta-rule")
    assert not (tmp_path / "claims" / "mamba").exists() and (tmp_path / "claims" / "delta-rule" / "unrolled.html").exists()
    assert set(folder.listed(tmp_path)) == {str(p.relative_to(tmp_path).as_posix()) for p in tmp_path.rglob("*") if p.is_file()} - {
        folder.MARKER
    }


def test_what_cannot_be_used_is_refused_before_anything_runs(run, monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "watched", lambda plan: pytest.fail("it ran"))
    (tmp_path / "thesis.tex").write_text("years")
    code, out, err = run(tmp_path)
    assert (code, out) == (2, "") and "is not empty and holds no report" in err
    assert run(tmp_path / "site", "delta-rul")[0] == 2 and not (tmp_path / "site").exists()
    monkeypatch.setattr(book, "NEEDED", ("jinja2", "no_such_library"))
    code, out, err = run(tmp_path / "site")
    assert (code, out) == (2, "") and "the report needs no_such_library: install it with `pip install 'isoform[report]'`" in err


def test_importing_the_book_loads_no_library_of_it():
    import subprocess
    import sys

    code = "import sys, isoform.book; print([n for n in ('jinja2', 'math_core', 'markdown_it', 'sympy', 'torch') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
