"""Wrong edits, one a patch: a proof step, a form, a bound, a near miss, a rule of an engine; each turns a run red.

A patch in ``edits/`` begins with three lines about itself: ``run:`` is the command that notices, ``isoform …`` or
``pytest …``; ``says:`` is in its output, so that it is red for this reason and no other; ``what:`` is the edit in words.
"""

import functools
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EDITS = Path(__file__).parent / "edits"
PATCHES = sorted(EDITS.glob("*.patch"), key=lambda p: (p.read_text(encoding="utf-8").partition("\n")[0], p.name))
"""By command, so that those of one command share its control."""
ROOMS = ("derivations", "impl", "properties")
RED = (1, 3)
"""Violated, or not verified; 4 would be an edit that cannot even run."""
PATIENCE = 600

each_patch = pytest.mark.parametrize("path", PATCHES, ids=lambda p: p.stem)


@dataclass(frozen=True)
class Edit:
    """A patch with what it says of itself."""

    path: Path
    run: str
    says: str
    what: str


@dataclass(frozen=True)
class Tree:
    """A copy of the house, and the folder from which Python imports it."""

    root: Path
    packages: Path


def edit_of(path):
    head = path.read_text(encoding="utf-8").partition("\ndiff --git ")[0]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields.keys() == {"run", "says", "what"}, f"{path.name} begins with the lines run:, says: and what:, and no others"
    return Edit(path, **fields)


def git(*arguments, cwd):
    """Run git; a folder above ``cwd`` is not taken for its repository."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(Path(cwd).parent)}
    return subprocess.run(["git", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@functools.cache
def files():
    """The files of the working tree that git does not ignore."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of files to copy")
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    assert listed.returncode == 0, listed.stderr
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def grown(root, packages):
    """The tree at ``root``, with links to it by which it is the package isoform."""
    house = packages / "isoform"
    house.mkdir(parents=True)
    for part in (root / "api").iterdir():
        (house / part.name).symlink_to(part)
    for room in ROOMS:
        (house / room).symlink_to(root / room)
    return Tree(root, packages)


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """An unedited copy; what its controls compile is copied with it."""
    root = tmp_path_factory.mktemp("unedited") / "tree"
    for name in files():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    return grown(root, root.parent / "packages")


@pytest.fixture
def edited(original, tmp_path):
    """A second copy, to be edited."""
    yield grown(shutil.copytree(original.root, tmp_path / "tree"), tmp_path / "packages")
    shutil.rmtree(tmp_path / "tree")


def python(tree, *arguments):
    """Run Python in a tree with its packages first on the path, and the current folder not on it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment |= {"PYTHONPATH": str(tree.packages), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=tree.root, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def run(tree, command):
    """Run a patch's command in a tree."""
    program, *arguments = shlex.split(command)
    assert program in ("isoform", "pytest"), f"{command}: a command is isoform … or pytest …"
    return python(tree, "-m", program, *arguments)


def words(done):
    """What was printed, with its lines joined: tables are wrapped."""
    return " ".join((done.stdout + done.stderr).split())


def report(done):
    return f"exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}"


@functools.cache
def control(tree, command):
    """What the command finds in the unedited copy, once for all patches with that command."""
    return run(tree, command)


def test_there_are_edits():
    assert len(PATCHES) >= 20
    assert len({edit_of(path).what for path in PATCHES}) == len(PATCHES)


@each_patch
def test_a_patch_applies_and_says_what_notices_it(path):
    edit = edit_of(path)
    assert shlex.split(edit.run)[0] in ("isoform", "pytest") and edit.says and edit.what
    files()
    checked = git("apply", "--check", str(path), cwd=ROOT)
    assert checked.returncode == 0, f"{path.name} no longer applies and must be refreshed:\n{checked.stderr}"


@pytest.mark.deep
def test_the_copy_is_what_runs(original):
    places = "import isoform.cli, isoform.derivations.claim, isoform.impl, isoform.properties.bounds as b, sys; print(b.__file__)"
    done = python(original, "-c", f"{places}; print([m.__file__ for n, m in sys.modules.items() if n.startswith('isoform')])")
    assert done.returncode == 0, report(done)
    assert str(original.packages) in done.stdout and f"'{ROOT}/" not in done.stdout


@pytest.mark.deep
@each_patch
def test_a_wrong_edit_makes_a_run_fail(path, original, edited):
    edit = edit_of(path)
    before = control(original, edit.run)
    assert before.returncode == 0, f"`{edit.run}` is red without the edit: {report(before)}"
    assert edit.says not in words(before)
    applied = git("apply", str(path), cwd=edited.root)
    assert applied.returncode == 0, f"{path.name} no longer applies and must be refreshed:\n{applied.stderr}"
    after = run(edited, edit.run)
    assert after.returncode in RED, f"{edit.what}: {report(after)}"
    assert edit.says in words(after), f"red, but not by {edit.says!r}: {report(after)}"
