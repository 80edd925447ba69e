"""The pytest plugin: items of `isoform.conformance`, one a law, and a table of what came of them.

It imports nothing but pytest and what `isoform.conformance` itself needs; the rest is loaded when a kernel is held to a law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from isoform.checking.marking import LAW, MARK, conformance_of
from isoform.levels import LEVELS

if TYPE_CHECKING:
    from isoform.checking.items import Bench

PROPERTY = "isoform"
"""The name under which an item's report carries what came of its law, from workers of xdist too."""
ROW = ("test", "law", "verdict", "worst")
_bench: pytest.StashKey[Bench] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("isoform", "conformance of kernels")
    group.addoption("--isoform-level", choices=LEVELS, help="How much is tried of each law; wins over what tests say.")
    group.addoption("--isoform-seed", type=int, metavar="N", help="Seed of every random choice; wins over what tests say.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the table."""
    config.addinivalue_line("markers", f"{MARK}: a kernel held to the laws of an operator, by isoform.conformance.")
    config.pluginmanager.register(Table(), "isoform-table")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item of each law."""
    held = conformance_of(metafunc.function)
    if held is None:
        return
    from isoform.checking.items import laws_of

    laws, wrong = laws_of(held, _overriding(metafunc.config), metafunc.definition.path.parent)
    if wrong:
        pytest.fail(f"{metafunc.function.__name__}: {wrong}", pytrace=False)
    metafunc.parametrize(LAW, laws, indirect=True, ids=laws)


@pytest.fixture
def isoform_law(request: pytest.FixtureRequest) -> Callable[[Any], None]:
    """Hold a kernel to the law of this item."""
    from isoform.checking.items import Bench, Item

    held = conformance_of(getattr(request, "function", None))
    if held is None:
        pytest.fail(f"{LAW} is for functions that isoform.conformance marks", pytrace=False)
    config = request.config
    if _bench not in config.stash:
        config.stash[_bench] = Bench()
    item = Item(request.node.nodeid, request.param, held, _overriding(config), request.path.parent, _folder(config))

    def hold(kernel: Any) -> None:
        outcome = config.stash[_bench].hold(item, kernel)
        row = dict(zip(ROW, (_test(request.node, item.law), item.law, outcome.verdict, outcome.worst)))
        request.node.user_properties.append((PROPERTY, row))
        if outcome.verdict == "expected":
            pytest.xfail(outcome.text)
        if outcome.verdict == "not-applicable":
            pytest.skip(outcome.text)
        if outcome.text:
            pytest.fail(outcome.text, pytrace=False)

    return hold


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the worker that was kept."""
    if _bench in config.stash:
        config.stash[_bench].close()


class Table:
    """Laws and verdicts, printed at the end. Reports of other processes pass here too, so it is kept from them."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a report carries."""
        for name, value in report.user_properties:
            if name == PROPERTY:
                self.rows[report.nodeid] = value  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a block for each test."""
        if not self.rows:
            return
        terminalreporter.write_sep("=", "isoform: laws and verdicts")
        width = max(len(row["law"]) for row in self.rows.values())
        for test in dict.fromkeys(row["test"] for row in self.rows.values()):
            terminalreporter.write_line(test)
            for row in self.rows.values():
                if row["test"] == test:
                    terminalreporter.write_line(f"  {row['law']:{width}}  {_cell(row)}")


def _cell(row: dict[str, Any]) -> str:
    verdict, worst = row["verdict"].replace("-", " "), row["worst"]
    return verdict if worst is None else f"{verdict:14}  error/bound {worst:.2g}"


def _test(node: Any, law: str) -> str:
    """The test of an item: its id without the law's part."""
    name, _, parameters = node.nodeid.removesuffix("]").partition("[")
    rest = parameters.removesuffix(law).removeprefix(law).strip("-")
    return f"{name}[{rest}]" if rest else name


def _overriding(config: pytest.Config) -> dict[str, Any]:
    """The options of `isoform.check` that the command line sets."""
    given = {"level": config.getoption("--isoform-level"), "seed": config.getoption("--isoform-seed")}
    return {name: value for name, value in given.items() if value is not None}


def _folder(config: pytest.Config) -> Any:
    """Where witness files are written: a folder in the cache of pytest, or none where there is no cache."""
    cache = getattr(config, "cache", None)
    return None if cache is None else cache.mkdir("isoform")
