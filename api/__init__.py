"""One layer, all its forms: proved equal by computer algebra, implemented in PyTorch, checked against each other.

Importing this package loads neither torch nor SymPy; a function loads what it needs when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoform.book import report
    from isoform.checking.marking import conformance
    from isoform.checking.runner import check
    from isoform.citing.citation import cite
    from isoform.inspection import claims, show, trust
    from isoform.runner import verify
    from isoform.selection import UnknownName

    __version__: str

_HOME = {
    "check": "isoform.checking.runner",
    "conformance": "isoform.checking.marking",
    "verify": "isoform.runner",
    "cite": "isoform.citing.citation",
    "report": "isoform.book",
    "show": "isoform.inspection",
    "trust": "isoform.inspection",
    "claims": "isoform.inspection",
    "UnknownName": "isoform.selection",
}

__all__ = ["UnknownName", "__version__", "check", "cite", "claims", "conformance", "report", "show", "trust", "verify"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("isoform")
    if name not in _HOME:
        raise AttributeError(f"module 'isoform' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
