"""The page on checking a kernel shows what the commands say."""

import re
import shlex
from pathlib import Path

import pytest

from isoform import cli

PAGE = (Path(__file__).parents[2] / "docs" / "check.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {text.split()[1]: text for kind, text in BLOCKS if kind == "python" and text.startswith("# ")}
RUNS = dict(text[2:].replace("\\\n", "").split("\n", 1) for kind, text in BLOCKS if text.startswith("$ isoform"))
DEEP = [command for command in RUNS if "--level" not in command and "replay" not in command]
ROW = re.compile(r"^ (\S+) +(holds|violated|not-applicable|unverified) ", re.MULTILINE)
ENDING = re.compile(r"exit (\d+)$", re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the page."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def verdicts(text):
    """Law by law."""
    return dict(ROW.findall(text))


def said(command, capsys):
    """What a command of the page prints, and its exit code."""
    code = cli.main([*shlex.split(command)[1:], *(["--jobs", "1"] if "check" in command else [])])
    return capsys.readouterr().out, code


def test_the_page_has_two_kernels_and_three_commands():
    assert set(FILES) == {"my_kernel.py", "fast.py"} and len(RUNS) == 3 and len(DEEP) == 1


@pytest.mark.deep
def test_a_wrong_kernel_gets_the_verdicts_of_the_page(folder, capsys):
    wrong, replay = (command for command in RUNS if command not in DEEP)
    out, code = said(wrong, capsys)
    assert verdicts(out) == verdicts(RUNS[wrong]) and len(verdicts(out)) == 4
    assert [code] == [int(n) for n in ENDING.findall(RUNS[wrong])] == [1]
    assert "T mod 16 ≠ 0" in out and "T mod 16 ≠ 0" in RUNS[wrong]
    out, code = said(replay, capsys)
    assert out.endswith(RUNS[replay]) and code == 1


@pytest.mark.deep
def test_a_right_kernel_gets_the_verdicts_of_the_page(folder, capsys):
    (right,) = DEEP
    out, code = said(right, capsys)
    assert verdicts(RUNS[right]).items() <= verdicts(out).items()
    assert set(verdicts(out).values()) == {"holds"} and code == 0
