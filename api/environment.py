"""Where a run took place, as far as its outcome may depend on it: no host name, no path, no date."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from isoform.derivations.guests import guests


def environment() -> dict[str, Any]:
    """Return Python, platform, isoform, its commit in a checkout, the packages that it stands on, and those that bring columns."""
    return {
        "isoform": version("isoform"),
        "commit": commit(Path(__file__).parents[1]),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": packages(),
        "columns": columns(),
    }


def columns() -> dict[str, str]:
    """Return the columns of other packages, each with the distribution that brings it and its version."""
    return {name: f"{guest.distribution} {guest.version}" for name, guest in guests().items()}


def packages() -> dict[str, str]:
    """Return the version of every package that isoform needs, extras apart."""
    needed = (re.match(r"[\w.-]+", line) for line in requires("isoform") or () if "extra ==" not in line)
    found = {match[0]: _version(match[0]) for match in needed if match}
    return {name: found[name] for name in sorted(found)}


def commit(checkout: Path) -> str | None:
    """Return the commit of a git checkout, with `+` if tracked files differ from it; None where there is none."""
    if not (checkout / ".git").exists():
        return None
    try:
        head, changed = (_git(checkout, *call) for call in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no")))
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
