"""Where a new column goes: onto the floors of our tree, or into the package that one stands in."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from isoform.scaffold.description import ScaffoldError

FLOORS = ("derivations", "impl", "properties")


@dataclass(frozen=True)
class Place:
    """The files of a column by floor, how they import each other and isoform, and its package; that is empty in our tree."""

    files: dict[str, Path]
    package: str

    def module(self, floor: str, name: str) -> str:
        """The module of a floor, as imported by the others."""
        return f"{self.package}.{floor}" if self.package else f"isoform.{floor}.{name}"


def find(module: str, folder: Path) -> Place:
    """Return where a column's files of this name go from the folder that one stands in. Raises ScaffoldError, also where one is there."""
    folder, ours = folder.resolve(), _ours()
    if ours and folder.is_relative_to(ours):
        place = Place({floor: ours / floor / f"{module}.py" for floor in FLOORS}, "")
    else:
        home, package = _package(folder)
        inside = home / module
        place = Place({floor: inside / f"{floor}.py" for floor in FLOORS}, f"{package}.{module}")
    there = [path for path in (*place.files.values(), *(path.with_suffix("") for path in place.files.values())) if path.exists()]
    if there:
        raise ScaffoldError(f"{there[0]} is already there, and nothing is overwritten; choose another name, or move it away")
    return place


def write(place: Place, texts: dict[str, str]) -> tuple[Path, ...]:
    """Write the files and return their paths; outside our tree the column's folder becomes a package."""
    written = []
    for floor, text in texts.items():
        path = place.files[floor]
        path.parent.mkdir(exist_ok=True)
        if place.package and not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").touch()
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        written.append(path)
    return tuple(written)


def _ours() -> Path | None:
    """Our own tree; None where isoform is installed without it."""
    tree = Path(__file__).resolve().parents[2]
    return tree if (tree / "pyproject.toml").exists() else None


def _package(folder: Path) -> tuple[Path, str]:
    """The package that a folder is in, or the one package of the project that it is in: its folder and dotted name."""
    if (folder / "__init__.py").exists():
        root = folder
        while (root.parent / "__init__.py").exists():
            root = root.parent
        return folder, ".".join(folder.relative_to(root.parent).parts)
    project = next((above for above in (folder, *folder.parents) if (above / "pyproject.toml").exists()), None)
    if project is None:
        raise ScaffoldError(
            f"{folder} is in no package: run it in a folder with an __init__.py, or in a project with a pyproject.toml and one package"
        )
    found = [path.parent for base in (project / "src", project) for path in sorted(base.glob("*/__init__.py"))]
    named = [path for path in found if path.name == _project_name(project)]
    if len(named or found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise ScaffoldError(f"{project} must have one package to write into, and has {names}; run it in the package's folder")
    (home,) = named or found
    return home, home.name


def _project_name(project: Path) -> str:
    try:
        table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScaffoldError(f"{project / 'pyproject.toml'} cannot be read: {error}") from None
    name = table.get("project", {}).get("name", "")
    return str(name).replace("-", "_").replace(".", "_").lower()
