"""`isoform check` and `isoform replay`: verdicts, witnesses, exit codes, and kernels that end in every way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import isoform
from isoform import cli, pool
from isoform.checking import files, runner
from isoform.checking import plan as planning
from isoform.checking.containment import Left, Notes, Tried, contained
from isoform.checking.report import CheckReport, LawReport
from isoform.checking.target import Unusable, load, parse

KERNELS = Path(__file__).parent / "kernels" / "kernels.py"
FEW = "form-equals-oracle,state-equals-oracle"


def check(name, laws=FEW, **options):
    return isoform.check(f"{KERNELS}:{name}", "delta-rule", level="quick", laws=tuple(laws.split(",")), jobs=1, **options)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A check of the wrong kernel, and the folder of its witnesses."""
    folder = tmp_path_factory.mktemp("witnesses")
    return check("wrong", witnesses=folder), folder


def test_a_right_kernel_holds_whatever_it_prints(capfd):
    code = cli.main(["check", f"{KERNELS}:prints", "--as", "delta-rule", "--level", "quick", "--laws", FEW, "--jobs", "1", "--json"])
    report = json.loads(capfd.readouterr().out)
    assert (code, report["exit_code"], report["state"]) == (0, 0, "complete")
    assert {law["law"]: law["verdict"] for law in report["laws"]} == dict.fromkeys(FEW.split(","), "holds")
    assert all(law["examples"] >= 5 and law["witness"] is None for law in report["laws"])
    assert report["summary"] == {"holds": 2, "violated": 0, "not-applicable": 0, "unverified": 0, "total": 2}


def test_a_wrong_state_is_found_beside_right_outputs(wrong):
    report, _ = wrong
    verdicts = {law.law: law.verdict for law in report.laws}
    assert verdicts == {"form-equals-oracle": "holds", "state-equals-oracle": "violated"}
    (law,) = report.violated
    assert (law.smallest.axes, report.exit_code) == (("batch", "head", "key feature", "feature"), 1)
    assert "although the outputs are right" in law.smallest.breaks
    assert abs(law.smallest.found - law.smallest.right) > law.smallest.bound
    assert any("fails only where T mod 16 ≠ 0: " in d.says for d in report.diagnosis)


def test_the_snippet_stands_alone(wrong):
    report, _ = wrong
    witness = report.violated[0].smallest
    run = subprocess.run([sys.executable, "-c", witness.snippet], cwd=KERNELS.parent, capture_output=True, text=True, check=True)
    assert float(run.stdout) == witness.found


def test_a_witness_is_violated_again_and_holds_on_a_right_kernel(wrong, capsys):
    report, folder = wrong
    file = report.violated[0].smallest.file
    assert Path(file).parent == folder
    assert cli.main(["replay", file]) == 1
    assert "state-equals-oracle: violated in 1 of 1 cases: exit 1" in capsys.readouterr().out
    assert cli.main(["replay", file, "--on", f"{KERNELS}:right", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["verdict"], again["witnesses"], again["cases"]) == ("holds", [], 1)


@pytest.mark.deep
@pytest.mark.parametrize("fault", ["ctypes.string_at(0)", "time.sleep(60)", "v = 2 * v"])
def test_a_witness_of_any_end_holds_once_the_kernel_is_mended(fault, tmp_path, monkeypatch, capsys):
    file = tmp_path / "mine.py"
    kernel = f"def kernel(q, k, v, beta):\n    if q.shape[1] == 3:\n        {fault}\n    return right(q, k, v, beta)[0]\n"
    file.write_text(f"{KERNELS.read_text()}\n\n{kernel}")
    monkeypatch.chdir(tmp_path)
    effort = ["--level", "quick", "--laws", "every-length", "--jobs", "1", "--call-limit", "1"]
    assert cli.main(["check", "mine.py:kernel", "--as", "delta-rule", *effort]) == 1
    witness = "isoform-witnesses/mine-py-kernel-every-length.json"
    assert [cli.main(["replay", witness]), cli.main(["replay", witness, "--on", f"{KERNELS}:right"])] == [1, 0]
    file.write_text(f"{KERNELS.read_text()}\n\n{kernel.replace(fault, 'pass')}")
    assert cli.main(["replay", witness]) == 0
    assert capsys.readouterr().out.endswith("every-length: holds in 1 of 1 cases: exit 0\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("law"), "it has no 'law'"),
        (lambda d: d.update(schema=2), "no witness file of schema 1"),
        (lambda d: d.update(witnesses=[]), "of a wrong type"),
        (lambda d: d.update(witnesses=[{"case": 3}]), "of a wrong type"),
        (lambda d: d.update(target=None), "say with --on which one it is"),
        (lambda d: d.update(target="../nowhere.py:f"), "there is no file"),
    ],
)
def test_a_malformed_witness_file_is_told_in_one_line(wrong, tmp_path, capsys, change, says):
    report, _ = wrong
    content = json.loads(Path(report.violated[0].smallest.file).read_text())
    change(content)
    file = tmp_path / "w.json"
    file.write_text(json.dumps(content))
    assert cli.main(["replay", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_file_that_is_no_json_or_not_there(tmp_path, capsys):
    (tmp_path / "w.json").write_text("{")
    assert cli.main(["replay", str(tmp_path / "w.json")]) == cli.main(["replay", str(tmp_path / "none.json")]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "it is not JSON" in first and "cannot be read" in second


@pytest.mark.parametrize(("name", "says"), [("hangs", "did not return within"), ("crashes", "SIGSEGV")])
def test_a_kernel_that_does_not_come_back_is_a_finding(name, says):
    report = check(name, "form-equals-oracle", call_limit=1.0)
    (law,) = report.violated
    assert says in law.smallest.breaks and report.exit_code == 1
    assert "(given q (" in law.smallest.breaks
    assert law.smallest.case["operator"] == "delta-rule" and not law.tried[-1].fine


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("kernels.py", "names no function"),
        ("nowhere.py:f", "there is no file nowhere.py"),
        ("no_such_package.module:f", "there is no module 'no_such_package.module'"),
        (f"{KERNELS}:wrng", "did you mean 'wrong'?"),
        (f"{KERNELS}:generator", "is a generator function"),
        (f"{KERNELS}:Layer", "is a class"),
        (f"{KERNELS}:Layer.forward", "needs an object"),
        (f"{KERNELS}:os", "cannot be called"),
    ],
)
def test_a_target_that_cannot_be_used_is_told_in_one_sentence(target, says):
    with pytest.raises(Unusable, match=r"^[^\n]+$") as error:
        load(parse(target))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("def f(:", "SyntaxError"),
        ("import sys\nsys.exit(5)", "SystemExit: 5"),
    ],
)
def test_what_fails_at_import_is_said(tmp_path, text, says):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(Unusable, match=says):
        load(parse(f"{file}:f"))


def test_a_layer_is_called_by_the_signature_of_its_forward():
    import inspect

    assert list(inspect.signature(load(parse(f"{KERNELS}:layer"))).parameters)[:4] == ["q", "k", "v", "beta"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"operator": "delta-rul"}, "did you mean 'delta-rule'"),
        ({"laws": ("state-equal-oracle",)}, "did you mean 'state-equals-oracle'"),
        ({"precision": "float23"}, "did you mean 'float32'"),
        ({"signature": "plane"}, "there is no signature 'plane'"),
        ({"map": "query=quack"}, "map: "),
        ({"limits": "Z%16"}, "limits: "),
        ({"level": "deepest"}, "there is no level"),
        ({"discretization": "zoh"}, "only selective-scan has one"),
        ({"chunk": 0}, "chunk is a number of tokens"),
        ({"jobs": 0}, "jobs is a number of processes"),
        ({"call_limit": 0}, "call_limit is a positive number"),
    ],
)
def test_an_option_that_nothing_can_be_done_with_is_told(options, says):
    def kernel(q, k, v, beta):
        return v

    with pytest.raises(Unusable, match=says):
        isoform.check(kernel, **{"operator": "delta-rule"} | options)


def test_a_closure_is_checked_here_and_the_report_says_so():
    from isoform.impl import delta_rule

    def kernel(q, k, v, beta, scale=None):
        return delta_rule.recurrent(q, k, v, beta, scale)[0]

    report = isoform.check(kernel, "delta-rule", level="quick", laws=tuple(FEW.split(",")))
    assert [law.verdict for law in report.laws] == ["holds", "not-applicable"]
    assert runner.UNCONTAINED in report.notes and report.exit_code == 0


def test_a_setting_that_the_first_call_changes_is_seen():
    report = check("sets", "surroundings-untouched")
    assert [law.smallest.breaks for law in report.violated] == ["the call changes torch's default dtype"]


def test_a_check_stops_at_the_first_violation():
    report = check("leaves", fail_fast=True)
    assert (report.state, report.exit_code) == ("stopped", 1)
    assert "raised SystemExit: 3" in report.violated[0].smallest.breaks
    assert [law.verdict for law in report.laws] == ["violated", "unverified"]


def test_an_interrupt_hands_back_what_was_found():
    target = parse(f"{KERNELS}:right")
    plan = planning.make(target, str(target), "delta-rule", level="quick", laws=FEW.split(","), jobs=1)

    def watch(event):
        if isinstance(event, pool.Ended) and event.key == "form-equals-oracle":
            raise KeyboardInterrupt

    report = runner.run(plan, watch=watch)
    assert (report.state, report.exit_code) == ("interrupted", 130)
    assert {law.law: law.verdict for law in report.laws}["form-equals-oracle"] == "holds"


def test_a_terminated_check_prints_what_was_found(monkeypatch, capsys):
    def killed(plan, **more):
        def watch(event):
            if isinstance(event, pool.Ended) and event.key == "form-equals-oracle":
                os.kill(os.getpid(), signal.SIGTERM)

        return run(plan, watch=watch)

    run, before = runner.run, signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(runner, "run", killed)
    code = cli.main(["check", f"{KERNELS}:right", "--as", "delta-rule", "--level", "quick", "--laws", FEW, "--jobs", "1"])
    out = capsys.readouterr().out
    assert code == 130 and "form-equals-oracle   holds" in out and out.endswith("interrupted: exit 130\n")
    assert "not run: interrupted: state-equals-oracle" in out and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not Path("/proc").exists(), reason="children are looked up in /proc")
def test_no_worker_outlives_a_terminated_check():
    script = [sys.executable, "-m", "isoform", "check", f"{KERNELS}:sleeps", "--as", "delta-rule", "--jobs", "2"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as run:
        deadline, tasks = time.monotonic() + 60, Path(f"/proc/{run.pid}/task")
        while not (workers := [w for f in tasks.glob("*/children") for w in f.read_text().split()]) and time.monotonic() < deadline:
            time.sleep(0.2)
        run.terminate()
        out, _ = run.communicate(timeout=60)
    assert workers and run.returncode == 130 and "interrupted: exit 130" in out
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_notes_tell_the_case_that_was_not_finished(tmp_path):
    notes = Notes(tmp_path / "notes", 10)
    notes.write("case", {"seed": 1})
    notes.write("tried", ("output", True))
    notes.write("done")
    notes.write("case", {"seed": 2})
    with notes.calling("q (1, 0)"):
        left = Left.read(tmp_path / "notes")
    assert left == Left((Tried({"seed": 1}, "output", True),), {"seed": 2}, True, True, "q (1, 0)")
    assert not Left.read(tmp_path / "notes").calling


def test_what_ends_an_interpreter_is_an_exception_here():
    def leave():
        raise SystemExit(3)

    with pytest.raises(Exception, match="3") as error:
        contained(leave, Notes())()
    assert type(error.value).__name__ == "SystemExit" and isinstance(error.value, Exception)


def report(*verdicts, state="complete"):
    laws = tuple(LawReport(f"law {n}", "", verdict) for n, verdict in enumerate(verdicts))
    return CheckReport("", "", "", "", "", "", 0, "", 64, laws, state=state)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (("holds", "not-applicable"), 0),
        (("holds", "violated", "unverified"), 1),
        (("holds", "unverified"), 3),
        (("not-applicable", "not-applicable"), 3),
        ((), 3),
    ],
)
def test_the_exit_code_is_that_of_what_weighs_most(verdicts, code):
    assert report(*verdicts).exit_code == code
    assert report(*verdicts, state="interrupted").exit_code == 130


def test_a_report_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="exit_code"):
        bool(report("holds"))


def test_a_folder_that_cannot_be_written_is_told(wrong, tmp_path):
    found, _ = wrong
    (tmp_path / "file").write_text("")
    plan = planning.make(parse(f"{KERNELS}:wrong"), "wrong", "delta-rule")
    with pytest.raises(Unusable, match="witnesses cannot be written"):
        files.write(found, plan, {}, tmp_path / "file" / "folder")


def test_what_was_found_is_not_lost_where_it_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    report = check("leaves", "layout", witnesses=tmp_path / "file")
    assert report.exit_code == 1 and report.violated[0].smallest.file == ""
    assert f"witnesses cannot be written to {tmp_path / 'file'}: it is no folder" in report.notes
