"""The worker pool: a call may answer, raise, hang or die, and the others go on."""

import os
import subprocess
import sys
import time

import pytest

from isoform import pool


def ended(tasks, jobs=2):
    return {event.key: event for event in pool.run(tasks, jobs=jobs) if isinstance(event, pool.Ended)}


def test_a_value_comes_back_whatever_the_call_prints(calls):
    tasks = [pool.Task(str(x), calls.double, (x,), 30) for x in range(5)]
    assert {key: event.value for key, event in ended(tasks).items()} == {str(x): 2 * x for x in range(5)}


def test_every_task_starts_before_it_ends(calls):
    tasks = [pool.Task(str(x), calls.double, (x,), 30) for x in range(3)]
    events = [(type(event), event.key) for event in pool.run(tasks, jobs=1)]
    assert events == [(kind, str(x)) for x in range(3) for kind in (pool.Started, pool.Ended)]


def test_an_exception_is_told_with_its_place(calls):
    event = ended([pool.Task("x", calls.fail, ("out of\nluck",), 30)])["x"]
    assert (event.kind, event.value) == ("raised", None)
    assert event.reason.startswith("ValueError: out of luck (isoform_fake_calls.py, line ")


def test_a_value_that_cannot_travel_is_an_exception(calls):
    assert ended([pool.Task("x", calls.unpicklable, (), 30)])["x"].kind == "raised"


def test_a_value_that_cannot_be_loaded_ends_alone(calls):
    events = ended([pool.Task("x", calls.Unreadable, (), 30), pool.Task("y", calls.double, (1,), 30)], jobs=1)
    assert events["x"].kind == "died" and "cannot be loaded" in events["x"].reason
    assert events["y"].value == 2


def test_a_call_that_cannot_travel_ends_alone(calls):
    events = ended([pool.Task("x", lambda: None, (), 30), pool.Task("y", calls.double, (1,), 30)], jobs=1)
    assert (events["x"].kind, events["y"].value) == ("died", 2)


@pytest.mark.parametrize(
    ("call", "reason"),
    [("spin", "exceeded its time limit of 0.2 s"), ("sleep", "not done after 2 s, 10 times its time limit")],
)
def test_a_late_call_is_killed_and_the_rest_goes_on(calls, call, reason):
    tasks = [pool.Task("late", getattr(calls, call), (600,), 0.2), *(pool.Task(str(x), calls.double, (x,), 30) for x in range(2))]
    events = ended(tasks, jobs=1)
    assert (events["late"].kind, events["late"].reason) == ("late", reason)
    assert [events[str(x)].value for x in range(2)] == [0, 2]


def test_waiting_counts_less_than_working(calls):
    assert ended([pool.Task("x", calls.sleep, (0.5,), 0.2)])["x"].kind == "done"


def test_a_limit_is_that_of_one_call(calls):
    events = ended([pool.Task(str(x), calls.spin, (0.3,), 0.5) for x in range(4)], jobs=1)
    assert {event.kind for event in events.values()} == {"done"}


def test_a_dead_worker_is_replaced(calls):
    events = ended([pool.Task("dead", calls.segfault, (), 30), pool.Task("x", calls.double, (1,), 30)], jobs=1)
    assert events["dead"].kind == "died"
    assert "exit status -11" in events["dead"].reason
    assert events["x"].value == 2


def test_closing_the_iterator_kills_what_runs(calls, tmp_path):
    note = tmp_path / "pid"
    events = pool.run([pool.Task("x", calls.sleep, (600, str(note)), 600)], jobs=1)
    assert next(events) == pool.Started("x")
    while not (note.exists() and note.read_text()):
        time.sleep(0.01)
    events.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_warm_up_that_raises_leaves_the_error_to_the_task(calls):
    *_, last = pool.run([pool.Task("x", calls.double, (1,), 30)], jobs=1, warm_up=calls.unpicklable)
    assert last.value == 2


def test_cores_are_shared_out(calls, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(pool, "default_jobs", lambda: 8)
    tasks = [pool.Task(str(x), calls.thread_budget, (), 30) for x in range(2)]
    assert {event.value for event in ended(tasks, jobs=2).values()} == {"4"}


def test_no_task_is_no_event():
    assert list(pool.run([], jobs=2)) == []


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import math\nfrom isoform import pool\n*_, last = pool.run([pool.Task('x', math.sqrt, (4.0,), 30)], jobs=1)\nprint(last.value)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "2.0\n"


def test_a_module_of_the_working_folder_is_not_taken_for_pickle(calls, tmp_path, monkeypatch):
    (tmp_path / "pickle.py").write_text("raise SystemExit('not the real one')")
    monkeypatch.chdir(tmp_path)
    assert ended([pool.Task("x", calls.double, (2,), 30)])["x"].value == 4


def test_a_task_may_be_followed_by_others(calls):
    def follow(ended):
        return [pool.Task(str(x), calls.double, (x,), 30) for x in range(ended.value)] if ended.key == "first" else []

    events = [e for e in pool.run([pool.Task("first", calls.double, (2,), 30)], jobs=2, follow=follow) if isinstance(e, pool.Ended)]
    assert {e.key: e.value for e in events} == {"first": 4, "0": 0, "1": 2, "2": 4, "3": 6}
    assert events[0].key == "first"


def test_the_signal_that_ended_a_process_is_told(calls):
    events = ended([pool.Task("dead", calls.segfault, (), 30), pool.Task("x", calls.double, (1,), 30)], jobs=1)
    assert (events["dead"].signal, events["x"].signal) == (11, 0)
