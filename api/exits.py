"""What an exit code of the `isoform` command says."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes; violated wins over failed, failed over unverified."""

    HELD = 0
    VIOLATED = 1
    USAGE = 2
    UNVERIFIED = 3
    FAILED = 4
    INTERRUPTED = 130


_BY_WEIGHT = (Exit.INTERRUPTED, Exit.VIOLATED, Exit.FAILED, Exit.UNVERIFIED)


def worst(*codes: Exit) -> Exit:
    """Return the code that wins; no code at all means that everything held.

    >>> worst(Exit.UNVERIFIED, Exit.VIOLATED).name, worst().name
    ('VIOLATED', 'HELD')
    """
    return next((code for code in _BY_WEIGHT if code in codes), Exit.HELD)
