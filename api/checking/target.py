"""What is checked: a function that can be named, so that a worker process can load it, or one that is at hand."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from isoform.worker import describe

Kernel = Callable[..., Any]
USAGE = "name it as MODULE:FUNCTION or FILE.py:FUNCTION"


class Unusable(ValueError):
    """A check that cannot be made as it was asked for, in one sentence."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice on a name that is not known."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there is {', '.join(known) or 'nothing'}"


@dataclass(frozen=True)
class Target:
    """A function by name: the module, or the file (an absolute path that ends in .py), and the path of attributes in it."""

    home: str
    attribute: str

    @property
    def is_file(self) -> bool:
        """Whether the function is in a file that is loaded by its path."""
        return self.home.endswith(".py")

    def __str__(self) -> str:
        return f"{Path(self.home).name if self.is_file else self.home}:{self.attribute}"


def parse(text: str) -> Target:
    """Read MODULE:FUNCTION or FILE.py:FUNCTION, where FUNCTION may be a path of attributes. Raises Unusable."""
    home, colon, attribute = text.rpartition(":")
    if not colon or not home or not all(part.isidentifier() for part in attribute.split(".")):
        raise Unusable(f"{text!r} names no function: {USAGE}")
    if home.endswith(".py"):
        path = Path(home).expanduser()
        if not path.is_file():
            raise Unusable(f"there is no file {home}")
        return Target(str(path.resolve()), attribute)
    if not all(part.isidentifier() for part in home.split(".")):
        raise Unusable(f"{home!r} is neither a module nor a file that ends in .py: {USAGE}")
    return Target(home, attribute)


def named(function: Kernel) -> Target | None:
    """The name under which a worker finds this function, or None: of closures, lambdas and what a script itself defines."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    home = sys.modules.get(module or "")
    if home is None or module == "__main__" or not all(part.isidentifier() for part in path.split(".")):
        return None
    try:
        if _attribute(home, path) is not function:
            return None
    except AttributeError:
        return None
    try:
        spec = importlib.util.find_spec(str(module))
    except (AttributeError, ValueError, ImportError):
        spec = None
    file = getattr(home, "__file__", None)
    if spec is not None and (spec.origin == file or file is None):
        return Target(str(module), path)
    return Target(str(Path(file).resolve()), path) if file and file.endswith(".py") else None


def load(target: Target) -> Kernel:
    """Import the function. Raises Unusable with what failed, whatever that was."""
    if not target.is_file and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = _from_file(Path(target.home)) if target.is_file else importlib.import_module(target.home)
    except ModuleNotFoundError as error:
        if not target.is_file and error.name in (target.home, target.home.partition(".")[0]):
            raise Unusable(f"there is no module {target.home!r} where Python looks for modules") from None
        raise Unusable(f"{target} cannot be imported: {describe(error)}") from None
    except SyntaxError as error:
        raise Unusable(f"{target} cannot be imported: {type(error).__name__}: {error}") from None
    except BaseException as error:
        raise Unusable(f"{target} cannot be imported: {describe(error)}") from None
    return usable(_found(module, target), str(target), bound=_is_bound(module, target.attribute))


def usable(found: Any, name: str, bound: bool = True) -> Kernel:
    """The kernel as a function of tensors that returns its result. Raises Unusable where it cannot be one."""
    if inspect.isclass(found):
        raise Unusable(f"{name} is a class, not a function: name a function, or an object that can be called")
    if not callable(found):
        raise Unusable(f"{name} is of type {type(found).__name__} and cannot be called: name a function")
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found) or inspect.isgeneratorfunction(found):
        kind = "a generator function" if inspect.isgeneratorfunction(found) else "asynchronous"
        raise Unusable(f"{name} is {kind}, so calling it computes nothing: name a function that returns its result")
    if not bound:
        raise Unusable(f"{name} is a method, which needs an object: name a method of an object, a static method or a function")
    return _module_call(found) if callable(getattr(found, "forward", None)) else found


def _module_call(layer: Any) -> Kernel:
    """A layer as a function with the signature of its forward."""

    @functools.wraps(layer.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        return layer(*args, **kwargs)

    return call


def _from_file(path: Path) -> ModuleType:
    """A fresh module of a file, whose folder is importable from then on."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"_checked_{abs(hash(path))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _attribute(home: Any, path: str) -> Any:
    return functools.reduce(getattr, path.split("."), home)


def _found(module: ModuleType, target: Target) -> Any:
    place: Any = module
    for part in target.attribute.split("."):
        try:
            place = getattr(place, part)
        except AttributeError:
            there = [n for n, x in getattr(place, "__dict__", {}).items() if callable(x) and not n.startswith("_")]
            where = getattr(place, "__name__", type(place).__name__)
            raise Unusable(f"{target} does not exist: {where} has no {part!r}; {nearest(part, there)}") from None
        except BaseException as error:
            raise Unusable(f"{target} cannot be looked up: {describe(error)}") from None
    return place


def _is_bound(module: ModuleType, attribute: str) -> bool:
    """Whether a function can be called as it is: not a plain method looked up on its class."""
    *outer, last = attribute.split(".")
    owner = _attribute(module, ".".join(outer)) if outer else module
    return not (inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, last, None)))
