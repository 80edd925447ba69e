"""Make a column: the texts are run before they are written, so what is written works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoform.derivations.guests import GROUP
from isoform.outcome import SCHEMA
from isoform.scaffold import place as places
from isoform.scaffold import text
from isoform.scaffold.description import Description, ScaffoldError, check_name


@dataclass(frozen=True)
class Column:
    """A column as it was written: its files, what kind of recurrence it is, and what is claimed of it.

    The last claim has a near miss to fill in. ``entry_point`` are the lines that a project outside our tree must have;
    ``without_code`` says why there are no forms, if so.
    """

    name: str
    files: tuple[Path, ...]
    kind: str
    claims: tuple[str, ...]
    entry_point: str
    without_code: str

    def to_dict(self) -> dict[str, Any]:
        """Return what `isoform new --json` prints."""
        return {
            "schema": SCHEMA,
            **vars(self),
            "files": [str(path) for path in self.files],
            "claims": list(self.claims),
        }


def make(description: Description, folder: Path) -> Column:
    """Write the files of a column, from the folder that one stands in. Raises ScaffoldError, and then nothing is written."""
    place = free_place(description.name, folder)
    texts = {"derivations": text.derivations(description)}
    made = _run(texts["derivations"], place.module("derivations", description.module), description.name)
    code, reason = _code(made["DECLARATION"], description.logs)
    if code:
        texts |= {"impl": code, "properties": text.properties(description, place)}
    written = places.write(place, texts)
    from isoform.derivations.layer import classify

    found = classify(made["DECLARATION"])
    kind = "; ".join(f"{update.state.member.name}: {update}" for update in found.updates)
    entry = f'[project.entry-points."{GROUP}"]\n{description.name} = "{place.package}"' if place.package else ""
    return Column(description.name, written, kind, tuple(claim.id for claim in made["CLAIMS"]), entry, reason)


def free_place(name: str, folder: Path) -> places.Place:
    """Return where a column of this name goes from a folder. Raises ScaffoldError where it cannot have the name, or nothing can go."""
    from isoform.derivations import registry

    check_name(name)
    place = places.find(name.replace("-", "_"), folder)
    if name in registry.architectures():
        raise ScaffoldError(f"there is already a column {name}; `isoform list {name}` shows its claims")
    declared = {d.operator: column for column in registry.architectures() for d in registry.declarations(column)}
    if name in declared:
        raise ScaffoldError(f"{declared[name]} has already an operator {name}")
    return place


def _run(source: str, module: str, name: str) -> dict[str, Any]:
    """What a file defines. Raises ScaffoldError where its formulas do not fit together."""
    namespace: dict[str, Any] = {"__name__": module}
    try:
        exec(compile(source, f"<{name}>", "exec"), namespace)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        raise ScaffoldError(f"{name} is no layer as described: {' '.join(str(error).split())}") from error
    return namespace


def _code(declaration: Any, logs: Mapping[str, str]) -> tuple[str, str]:
    """The source of the forms, or why there is none."""
    from isoform.derivations.layer.torch_code import torch_code
    from isoform.properties.declared import operator_of

    try:
        operator_of(declaration, logs=logs)
        return torch_code(declaration, logs=logs), ""
    except ValueError as error:
        return "", " ".join(str(error).split())
