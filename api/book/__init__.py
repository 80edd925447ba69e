"""The book: what a run found, as a static site that can be read without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isoform.book.folder import UnusableFolder, replace, reserve

if TYPE_CHECKING:
    from isoform.outcome import Report

NEEDED = ("jinja2", "markdown_it", "math_core")

__all__ = ["MissingLibrary", "UnusableFolder", "report", "require", "reserve", "write"]


class MissingLibrary(ImportError):
    """A library that only the book needs is not installed."""


def report(
    directory: str | Path,
    *names: str,
    seed: int = 0,
    level: str = "quick",
    jobs: int | None = None,
    time_limit: float = 60.0,
    symbolic_only: bool = False,
) -> Report:
    """Verify the named claims and architectures (all, if none is named) and write what was found as a site into a folder.

    ``directory/index.html`` is its first page. Returns what `isoform.verify` returns; an interrupted run is written as far as it
    came. Raises UnusableFolder (a ValueError) if the folder holds something else or cannot be written into, and MissingLibrary
    (an ImportError) without the extra `report`.
    """
    from isoform import plan, runner

    require()
    wanted = plan.make(names, seed=seed, level=level, jobs=jobs, time_limit=time_limit, symbolic_only=symbolic_only)
    reserve(Path(directory))
    found = runner.run(wanted)
    write(found, directory)
    if found.state == "interrupted":
        raise KeyboardInterrupt
    return found


def write(found: Report, directory: str | Path) -> int:
    """Write the pages of a run into a folder, in place of those that were there, and return how many there are.

    Raises UnusableFolder and MissingLibrary as `report` does.
    """
    require()
    from isoform.book import site

    target = reserve(Path(directory))
    files = site.files_of(found)
    replace(target, files)
    return sum(name.endswith(".html") for name in files)


def require() -> None:
    """Load all that the book needs, so that it is there after a long run. Raises MissingLibrary, which says what to install."""
    from importlib import import_module
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingLibrary(f"the report needs {', '.join(missing)}: install it with `pip install 'isoform[report]'`")
    import_module("isoform.book.site")
