"""From what the user names (claim ids, architectures) to what is meant."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class UnknownName(LookupError):
    """A name that is neither a claim nor an architecture."""


def architecture(id: str) -> str:
    """Return the part of a claim's id before the slash.

    >>> architecture("delta-rule/unrolled")
    'delta-rule'
    """
    return id.partition("/")[0]


def column(id: str) -> str:
    """Return the file name that a claim's architecture has on every floor.

    >>> column("delta-rule/unrolled")
    'delta_rule'
    """
    return architecture(id).replace("-", "_")


def select(names: Iterable[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Return the ids that the names mean, in the order of `ids`; no name at all means every id.

    >>> select(["memory"], ["memory/capacity", "rnn/unrolled"])
    ('memory/capacity',)
    """
    names = tuple(names)
    known = {*ids, *map(architecture, ids)}
    for name in names:
        if name not in known:
            raise UnknownName(_unknown(name, known))
    return tuple(id for id in ids if not names or id in names or architecture(id) in names)


def _unknown(name: str, known: Iterable[str]) -> str:
    nearest = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]!r}?" if nearest else "`isoform list` shows what there is"
    return f"there is no claim or architecture {name!r}; {advice}"
