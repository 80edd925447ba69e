"""Certificates: what is written is what was found, and what differs when it is done again is noticed, digit by digit."""

import copy
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isoform import certificate, cli, environment, recheck
from isoform.derivations.claim import FORMS
from isoform.derivations.registry import claim
from isoform.derivations.verification import verify_claim
from isoform.exits import Exit
from isoform.outcome import Law, Report, exit_code

ID = "delta-rule/three-forms"
LAWS = (
    Law("delta_rule", "prefix", "delta-rule", "recurrent", "holds", 8, 0.25, ""),
    Law("delta_rule", "packing", "delta-rule", "recurrent", "not-applicable", 0, None, "no packing"),
)


@pytest.fixture(scope="module")
def report():
    return Report("0.1.0", 0, "quick", (verify_claim(claim(ID)),), LAWS, ())


@pytest.fixture(scope="module")
def written(report):
    return certificate.certificate_of(report)


@pytest.fixture
def check(report, written, monkeypatch):
    """Check a certificate, by a run that finds what `report` has."""
    monkeypatch.setattr(recheck, "environment", lambda: copy.deepcopy(written["environment"]))
    return lambda content, **options: recheck.recheck(content, begin=lambda plan: report, **options)


@pytest.fixture
def run(house, capsys):
    def run(*arguments):
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


def leaves(value, place=()):
    """Where everything in a value is that is neither a list nor a table."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield place
    else:
        for key, item in inner:
            yield from leaves(item, (*place, key))


def changed(content, place):
    """The content with one sign, digit or truth value changed."""
    content = copy.deepcopy(content)
    *above, last = place
    holder = content
    for key in above:
        holder = holder[key]
    was = holder[last]
    if isinstance(was, str):
        digit = re.search(r"\d", was)
        at = digit.start() if digit else 0
        holder[last] = was[:at] + ("7" if was[at : at + 1] != "7" else "8") + was[at + 1 :]
    else:
        holder[last] = (not was) if isinstance(was, bool) else was + 1
    assert holder[last] != was
    return content


def test_a_certificate_says_what_was_found(written):
    (found,) = written["claims"]
    for key in ("version", "fingerprint", "statement", "statement_latex", "assumptions", "steps", "near_misses", "verdict", "scope"):
        assert found[key], key
    assert found["fingerprint"] == claim(ID).fingerprint()
    assert {item["engine"] for item in found["evidence"]} == {"isoform kernel", "evaluator"}
    assert all(step["method"] for step in found["steps"])
    assert all(miss["counterexample"] for miss in found["near_misses"]["list"])
    assert (written["seed"], written["level"], written["state"], len(written["laws"])) == (0, "quick", "complete", 2)
    assert written["environment"]["packages"].keys() >= {"sympy", "python-flint"}


def test_it_agrees_with_the_same_run(check, written):
    report = check(json.loads(json.dumps(written)))
    assert (report.failures, report.notes) == ((), ())


def test_every_change_to_a_claim_is_noticed(check, written):
    places = list(leaves(written["claims"][0]))
    assert len(places) > 60
    unnoticed = [place for place in places if not check(changed(written, ("claims", 0, *place))).failures]
    assert unnoticed == []


def test_whatever_a_claim_lacks_or_has_beside_is_noticed(check, written):
    for key in written["claims"][0].keys() - {"id", "version"}:
        content = copy.deepcopy(written)
        del content["claims"][0][key]
        assert any(key in failure.reason for failure in check(content).failures), key
    for key in ("steps", "assumptions", "evidence"):
        content = copy.deepcopy(written)
        content["claims"][0][key].append(content["claims"][0][key][-1])
        assert any(key in failure.reason for failure in check(content).failures), key
    content = copy.deepcopy(written)
    content["claims"][0]["remark"] = ""
    assert any("remark" in failure.reason for failure in check(content).failures)


def test_a_difference_is_named(check, written):
    content = copy.deepcopy(written)
    content["claims"][0]["steps"][0]["text"] += " + 1"
    (failure,) = check(content).failures
    assert (failure.where, failure.exit) == (ID, Exit.VIOLATED)
    assert failure.reason.startswith("steps[0].text differs: ") and "in the certificate" in failure.reason
    assert "+ 1" in failure.reason


def test_many_differences_are_counted(check, written):
    content = copy.deepcopy(written)
    steps = content["claims"][0]["steps"]
    content["claims"][0]["steps"] = [{**step, "title": "other", "method": "other", "text": "other"} for step in steps * 3]
    found = check(content).failures
    assert len(found) == 9
    assert re.fullmatch(r"\d+ further fields differ, steps\[\d+\].* the last of them", found[-1].reason)


@pytest.mark.parametrize(("key", "value"), [("verdict", "violated"), ("examples", 9), ("law", "suffix"), ("form", "chunkwise")])
def test_a_change_to_a_law_is_noticed(check, written, key, value):
    content = copy.deepcopy(written)
    content["laws"][0][key] = value
    found = check(content).failures
    assert exit_code(found) == 1 and all("delta-rule." in failure.where for failure in found)


def test_a_law_that_only_one_side_has_is_noticed(check, written):
    content = copy.deepcopy(written)
    del content["laws"][1]
    assert [failure.where for failure in check(content).failures] == ["delta-rule.recurrent / packing"]


def test_laws_that_do_not_run_here_are_no_difference(written, report, monkeypatch):
    late = replace(report, laws=(Law("delta_rule", certificate.NOT_RUN, "delta_rule", "every form", "unverified", 0, None, "late"),))
    assert recheck.recheck(written, begin=lambda plan: late).failures == ()
    nothing = replace(report, laws=())
    assert len(recheck.recheck(written, begin=lambda plan: nothing).failures) == 2


def test_how_close_an_error_came_to_its_bound_is_not_compared(check, written):
    content = copy.deepcopy(written)
    content["laws"][0]["worst_error_over_bound"] = 0.125
    assert check(content).failures == ()


def test_another_version_of_an_engine_is_a_note(check, written):
    content = copy.deepcopy(written)
    content["environment"]["packages"]["sympy"] = "1.13.0"
    for item in content["claims"][0]["evidence"]:
        item["engine_version"] = item["engine_version"].replace("1.14.0", "1.13.0")
    report = check(content)
    assert report.failures == ()
    assert report.notes == (f"packages.sympy is '1.13.0' in the certificate, {written['environment']['packages']['sympy']!r} here",)


def test_unknown_claims_and_versions_are_named_and_the_rest_is_checked(check, written):
    content = copy.deepcopy(written)
    content["claims"] += [{"id": "delta-rule/gone", "version": 1}]
    (failure,) = check(content).failures
    assert failure.where == "delta-rule/gone" and "none of that name here" in failure.reason
    content = copy.deepcopy(written)
    content["claims"][0]["version"] = 2
    report = check(content)
    assert [failure.reason for failure in report.failures] == ["the certificate has version 2, and here it is 1"]
    assert (report.exit_code, report.claims) == (1, ())


def test_a_claim_that_is_not_decided_here_is_no_difference(written, report, monkeypatch):
    from isoform import runner

    late = runner.unknown(claim(ID), "exceeded its time limit of 1 s", 1.0)
    found = recheck.recheck(written, begin=lambda plan: Report("0.1.0", 0, "quick", (late,), LAWS, ()))
    assert found.failures == ()  # the run itself reports it; here it reported nothing
    assert found.claims == (late,)


def test_one_changed_sign_anywhere_breaks_the_digest(written, tmp_path):
    file = tmp_path / "c.json"
    for place in leaves(written):
        if place[0] not in ("schema", "digest") and written[place[0]] is not None:
            value = written
            for key in place:
                value = value[key]
            if value is None:
                continue
            assert certificate.digest(changed(written, place)) != written["digest"], place
    file.write_text(json.dumps(changed(written, ("laws", 0, "worst_error_over_bound"))))
    with pytest.raises(certificate.Altered, match="changed after it was written"):
        certificate.read(file)


def test_what_was_written_is_read(report, tmp_path, written, monkeypatch):
    monkeypatch.setattr(certificate, "environment", lambda: written["environment"])
    file = tmp_path / "c.json"
    certificate.write(report, file)
    first = file.read_bytes()
    assert certificate.read(file) == written
    certificate.write(report, file)
    assert file.read_bytes() == first
    assert list(tmp_path.iterdir()) == [file]


def test_a_failed_write_leaves_what_there_was(report, tmp_path, monkeypatch):
    file = tmp_path / "c.json"
    file.write_text("before")

    def broken(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(json, "dump", broken)
    with pytest.raises(OSError, match="no space"):
        certificate.write(report, file)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read as JSON"),
        ("[]", "no digest"),
        ('{"digest": ""}', "its schema is None"),
        ('{"schema": 1}', "no digest"),
        ('{"schema": 2, "digest": ""}', "its schema is 2"),
        ('{"schema": 1, "digest": "", "seed": NaN}', "NaN is no number"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("\udcff", "cannot be read as JSON"),
    ],
)
def test_what_is_no_certificate_is_refused_in_a_sentence(tmp_path, capsys, text, reason):
    file = tmp_path / "c.json"
    file.write_text(text, errors="surrogateescape")
    code = cli.main(["verify", "--from", str(file)])
    out, err = capsys.readouterr()
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert reason in err


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("seed",), "0", "seed must be int"),
        (("seed",), True, "seed must be int"),
        (("seed",), -1, "at least 0"),
        (("level",), "slow", "its level one of"),
        (("claims",), {}, "claims must be list"),
        (("claims",), [], "no claim"),
        (("claims",), [1], "an id and a version"),
        (("claims", 0, "version"), "1", "an id and a version"),
        (("claims",), [{"id": "a/b", "version": 1}] * 2, "two of its claims"),
        (("laws", 0, "form"), 1, "each of its laws"),
        (("laws", 0, "law"), "packing", "two of its laws"),
    ],
)
def test_a_certificate_of_another_shape_is_refused(written, tmp_path, place, value, reason):
    content = copy.deepcopy(written)
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    file = tmp_path / "c.json"
    file.write_text(json.dumps({**content, "digest": certificate.digest(content)}))
    with pytest.raises(certificate.Malformed, match=reason):
        certificate.read(file)


def test_the_environment_names_no_machine(written):
    import getpass
    import platform

    text = json.dumps(written["environment"])
    assert str(Path.home()) not in text and str(Path.cwd()) not in text
    assert platform.node() not in text.split('"') and getpass.getuser() not in text.split('"')


def test_the_commit_says_whether_files_differ(tmp_path):
    assert environment.commit(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "file").write_text("1")
    for call in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *call], check=True)
    clean = environment.commit(tmp_path)
    assert re.fullmatch("[0-9a-f]{40}", clean)
    (tmp_path / "file").write_text("2")
    assert environment.commit(tmp_path) == clean + "+"


def test_the_command_writes_and_checks(run, tmp_path):
    file = tmp_path / "c.json"
    code, out, _ = run("verify", "alpha/holds", "alpha/crashes", "--certificate", str(file), "--seed", "5", "--json")
    assert code == 4
    assert FORMS in [item["engine"] for item in json.loads(out)["claims"][0]["evidence"]]
    content = certificate.read(file)
    assert (content["seed"], [found["id"] for found in content["claims"]]) == (5, ["alpha/holds"])
    assert content["undecided"][0]["where"] == "alpha/crashes" and "lost its way" in content["undecided"][0]["reason"]
    assert all(item["engine"] != FORMS for item in content["claims"][0]["evidence"])
    code, out, _ = run("verify", "--from", str(file))
    assert code == 0 and "seed 5" in out and "leaves 1 undecided" in out and "law checks: 2" in out
    content["claims"][0]["near_misses"]["list"][0]["counterexample"] = "T = 2: 3 ≠ 5"
    file.write_text(json.dumps({**content, "digest": certificate.digest(content)}))
    code, out, _ = run("verify", "--from", str(file))
    assert code == 1 and "near_misses.list[0].counterexample differs" in out
    file.write_text(json.dumps(content))
    assert run("verify", "--from", str(file))[0] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "absent.json"),
        ("--certificate", "absent/c.json"),
        ("--certificate", "."),
        ("--from", "{file}", "--seed", "1"),
        ("--from", "{file}", "--level", "deep"),
        ("beta-net", "--from", "{file}"),
    ],
)
def test_wrong_usage(run, tmp_path, written, arguments, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(written))
    code, out, err = run("verify", *(argument.format(file="c.json") for argument in arguments))
    assert (code, out) == (2, "") and err


def test_an_interrupted_run_writes_what_it_has(faked, tmp_path):
    file = tmp_path / "c.json"
    arguments = ("verify", "alpha/holds", "alpha/slow", "--jobs", "1", "--certificate", str(file))
    process = subprocess.Popen([sys.executable, faked, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "slow" not in (line := process.stderr.readline()):
        assert line, "the run ended before the slow claim began"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130, err
    content = certificate.read(file)
    assert (content["state"], [found["id"] for found in content["claims"]]) == ("interrupted", ["alpha/holds"])
    assert content["undecided"] == [{"where": "alpha/slow", "reason": "not run: interrupted"}]
