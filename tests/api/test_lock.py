"""The lock file: an id is permanent, and a statement does not change under an unchanged version."""

from dataclasses import replace

import pytest

from isoform.derivations import lock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "claims.lock"


@pytest.fixture
def claims(fakes):
    return fakes.CLAIMS


def changed(claims, **changes):
    return (replace(claims[0], **changes), *claims[1:])


def test_what_is_written_is_read(claims, path):
    written = lock.write(claims, path)
    assert lock.read(path) == written
    assert [entry.id for entry in written] == sorted(claim.id for claim in claims)
    assert lock.check(claims, path) == ()


def test_the_file_does_not_depend_on_the_order(claims, path):
    lock.write(claims, path)
    before = path.read_text()
    lock.write(claims[::-1], path)
    assert path.read_text() == before


def test_any_title_survives(claims, path):
    title = 'β‖k‖² ≤ 2, "quoted" and \\back'
    lock.write(changed(claims, title=title), path)
    assert title in [entry.title for entry in lock.read(path)]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"text": "b"}, "the statement changed, but the version is still 1"),
        ({"version": 0}, "version 0 is older than the locked 1"),
    ],
)
def test_a_broken_promise_is_found_and_never_written(claims, path, changes, text):
    lock.write(claims, path)
    before = path.read_text()
    (problem,) = lock.check(changed(claims, **changes), path)
    assert problem.blocking and problem.id == claims[0].id and text in str(problem)
    with pytest.raises(lock.LockError, match=text):
        lock.write(changed(claims, **changes), path)
    assert path.read_text() == before


def test_a_removed_claim_is_found_and_never_written(claims, path):
    lock.write(claims, path)
    (problem,) = lock.check(claims[1:], path)
    assert problem.blocking and "ids are permanent" in problem.text
    with pytest.raises(lock.LockError, match=claims[0].id):
        lock.write(claims[1:], path)


def test_an_id_used_twice_is_found(claims, path):
    lock.write(claims, path)
    assert any("two claims" in problem.text for problem in lock.check((*claims, claims[0]), path))
    with pytest.raises(lock.LockError, match="two claims"):
        lock.write((*claims, claims[0]), path)


@pytest.mark.parametrize("changes", [{"text": "b", "version": 2}, {"title": "another"}, {"version": 2}])
def test_a_lock_that_is_behind_is_found_and_written(claims, path, changes):
    lock.write(claims, path)
    (problem,) = lock.check(changed(claims, **changes), path)
    assert not problem.blocking and "run `isoform lock`" in problem.text
    lock.write(changed(claims, **changes), path)
    assert lock.check(changed(claims, **changes), path) == ()


def test_an_unlisted_claim_is_found(claims, path):
    lock.write(claims[1:], path)
    (problem,) = lock.check(claims, path)
    assert (problem.id, problem.blocking) == (claims[0].id, False)


@pytest.mark.parametrize(
    "content", ["not toml at all", '["a/b"]\nversion = 1\n', '["a/b"]\nversion = "1"\ntitle = "t"\nfingerprint = "f"\n', "a = 1\n"]
)
def test_a_malformed_file_is_an_error(path, content):
    path.write_text(content)
    with pytest.raises(lock.LockError, match=r"claims\.lock is not readable"):
        lock.read(path)


def test_a_missing_file_says_what_to_do(path):
    with pytest.raises(lock.LockError, match="run `isoform lock`"):
        lock.read(path)


def test_a_file_of_other_bytes_and_a_folder_are_errors(path):
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(lock.LockError, match=r"claims\.lock is not readable"):
        lock.read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(lock.LockError, match=r"claims\.lock is not readable"):
        lock.read(path)
