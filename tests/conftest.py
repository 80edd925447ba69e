"""Settings of the whole test run: the deep tier, and Hypothesis's profiles."""

import pytest
from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "ci", max_examples=30, derandomize=True, database=None, deadline=None, print_blob=True, suppress_health_check=SLOW
)
settings.register_profile("deep", settings.get_profile("ci"), derandomize=False, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="run the deep tier too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "deep: takes minutes; runs with --deep or -m deep")
    settings.load_profile("deep" if _is_deep(config) else "ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _is_deep(config):
        return
    deep = [item for item in items if item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=deep)
    items[:] = [item for item in items if not item.get_closest_marker("deep")]


def _is_deep(config: pytest.Config) -> bool:
    return config.getoption("--deep") or "deep" in config.getoption("-m")
