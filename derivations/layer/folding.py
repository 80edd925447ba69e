"""Long lines of generated source, broken where Python lets them: at the operators of a sum, and at the arguments of a call."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120
"""Characters of a line."""
_HEAD = re.compile(r"^(return |[\w, ]+ = |for [\w, ]+ in )?(.*?)(:?)$", re.DOTALL)
_OPENING, _CLOSING = "([{", ")]}"


def body(*lines: str) -> str:
    """The lines of a function, indented."""
    return textwrap.indent("\n".join(line if line.startswith('"""') else folded(line, WIDTH - 4) for line in lines), "    ")


def paragraph(text: str, lead: str = "") -> str:
    """Prose in a docstring."""
    return textwrap.fill(text, WIDTH, initial_indent=lead, subsequent_indent=2 * lead, break_long_words=False, break_on_hyphens=False)


def folded(line: str, room: int = WIDTH, inside: bool = False) -> str:
    """A line that is too long over several; ``inside`` brackets a sum needs none of its own."""
    if len(line) <= room or "\n" in line:
        return line
    bare = line.lstrip(" ")
    if bare != line:
        space = line[: len(line) - len(bare)]
        return textwrap.indent(folded(bare, room - len(space), inside), space)
    match = _HEAD.match(line)
    assert match is not None
    head, rest, end = match[1] or "", match[2], match[3]
    parts = _cut(rest, (" + ", " - "))
    if len(parts) > 1:
        rows = "\n".join(folded(p, room - 4, inside=True) for p in parts)
        return rows if inside and not head else f"{head}(\n{textwrap.indent(rows, '    ')}\n){end}"
    found = _brackets(rest)
    if found is None:
        return line
    start, stop = found
    rows = _within(rest[start + 1 : stop], room - 4, _is_list(rest, start, stop))
    return f"{head}{rest[: start + 1]}\n{textwrap.indent(rows, '    ')}\n{rest[stop:]}{end}"


def _within(text: str, room: int, several: bool) -> str:
    """What stands between brackets: on one line if it fits, else an item a line."""
    if len(text) <= room:
        return text
    if not several:
        return folded(text, room, inside=True)
    return "\n".join(f"{folded(item, room, inside=True)}," for item in _cut(text, (", ",)))


def _cut(text: str, marks: tuple[str, ...]) -> list[str]:
    """The parts between marks outside of brackets; an operator begins the part that it is in front of."""
    parts, depth, start = [], 0, 0
    for n, c in enumerate(text):
        depth += (c in _OPENING) - (c in _CLOSING)
        mark = next((m for m in marks if text.startswith(m, n)), "")
        if depth == 0 and mark:
            parts.append(text[start:n])
            start = n + (len(mark) if mark == ", " else 1)
    return [*parts, text[start:]]


def _is_list(text: str, start: int, stop: int) -> bool:
    """Whether brackets hold arguments or items, not one term."""
    called = text[start] != "(" or text[:start][-1:].isalnum() or text[:start].endswith("_")
    return called or len(_cut(text[start + 1 : stop], (", ",))) > 1


def _brackets(text: str) -> tuple[int, int] | None:
    """Where the longest brackets outside of others begin and end, those of a subscript left out."""
    found, depth, start = [], 0, 0
    for n, c in enumerate(text):
        if c in _OPENING:
            start = n if depth == 0 else start
            depth += 1
        elif c in _CLOSING:
            depth -= 1
            subscript = text[start] == "[" and start > 0 and text[start - 1] not in " ("
            if depth == 0 and not subscript:
                found.append((start, n))
    return max(found, key=lambda ends: ends[1] - ends[0], default=None)
