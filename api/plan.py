"""What a run is made of: the claims to prove, the columns to cross-check, and the calls that do it in a worker."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from isoform.levels import LEVELS
from isoform.pool import Task, default_jobs, threads_each
from isoform.selection import column, select

if TYPE_CHECKING:
    from isoform.derivations.claim import Claim, ClaimResult

PATIENCE = {"quick": 2.0, "default": 10.0, "deep": 60.0}
"""A column's cross-check may take this many times the limit of a claim, on each thread it may use."""


@dataclass(frozen=True)
class Plan:
    """The claims and columns of a run, the claims that are known and not there, and everything that decides how it goes."""

    claims: tuple[Claim, ...]
    columns: tuple[str, ...]
    lost: tuple[str, ...]
    seed: int
    level: str
    jobs: int
    time_limit: float
    fail_fast: bool

    def tasks(self) -> tuple[Task, ...]:
        """Return the calls to make: each claim, then each column's cross-check."""
        patience = PATIENCE[self.level] * self.time_limit * threads_each(self.jobs)
        proofs = (Task(claim.id, prove, (claim.id, self.seed), self.time_limit) for claim in self.claims)
        checks = (Task(name, cross_check, (name, self.level, self.seed), patience) for name in self.columns)
        return (*proofs, *checks)


def make(
    names: Iterable[str] = (),
    *,
    seed: int = 0,
    level: str = "quick",
    jobs: int | None = None,
    time_limit: float = 60.0,
    symbolic_only: bool = False,
    fail_fast: bool = False,
) -> Plan:
    """Return the plan for the named claims and architectures; no name at all means everything."""
    jobs = default_jobs() if jobs is None else jobs
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, not {time_limit}")
    names = tuple(names)
    claims = selected_claims(names)
    if not claims:
        raise RuntimeError("no claim was found, so nothing can be verified")
    columns = () if symbolic_only else tuple(dict.fromkeys(name for c in claims if (name := column(c.id)) in implemented()))
    lost = () if names else lost_claims(claims)
    return Plan(claims, columns, lost, seed, level, jobs, time_limit, fail_fast)


def lost_claims(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Return the ids that the lock file lists and no claim carries: what is known and cannot be run."""
    from isoform.derivations.lock import read

    found = {claim.id for claim in claims}
    return tuple(entry.id for entry in read() if entry.id not in found)


def selected_claims(names: Iterable[str]) -> tuple[Claim, ...]:
    """Return the claims that the names mean, or raise UnknownName."""
    from isoform.derivations.registry import claims

    by_id = {claim.id: claim for claim in claims()}
    return tuple(by_id[id] for id in select(names, tuple(by_id)))


def implemented() -> frozenset[str]:
    """Return the columns, as files are named, that have forms and operators for them, in impl/ and properties/; none is imported."""
    from isoform.derivations.guests import guests

    both = ("impl", "properties")
    own = frozenset.intersection(*(_modules(f"isoform.{floor}") for floor in both))
    return own | {name.replace("-", "_") for name, guest in guests().items() if all(map(guest.has, both))}


def forms(name: str) -> ModuleType:
    """Return the module of a column's forms; the name is that of a file, or as in ids."""
    from isoform.derivations.guests import guests

    guest = guests().get(name.replace("_", "-"))
    return guest.load("impl") if guest else importlib.import_module(f"isoform.impl.{name.replace('-', '_')}")


def _modules(package: str) -> frozenset[str]:
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return frozenset(module.name for module in pkgutil.iter_modules(folders or []))


def warm_up() -> None:
    """Load in a worker what every proof needs, so that a claim's time is its own."""
    from isoform.derivations.registry import claims

    claims()


def prove(id: str, seed: int) -> ClaimResult:
    """Verify one claim, in a worker."""
    from isoform.derivations.verification import verify_claim

    (claim,) = selected_claims([id])
    return verify_claim(claim, seed=seed)


def cross_check(name: str, level: str, seed: int) -> Any:
    """Hold a column's forms against its proved statements, in a worker."""
    from isoform.properties.crosscheck import crosscheck

    own = forms(name)
    return crosscheck(name, own.FORMS, getattr(own, "STEPS", {}), getattr(own, "CACHED", {}), level=level, seed=seed)
