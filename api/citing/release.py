"""The release that is running, as CITATION.cff describes it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Release:
    """What CITATION.cff says of a release; ``date`` is empty where it is not known."""

    title: str
    authors: tuple[str, ...]
    version: str
    date: str
    license: str
    url: str = ""
    doi: str = ""

    @property
    def year(self) -> str:
        """The year of the release."""
        return self.date[:4]


def release() -> Release:
    """Return the release: from CITATION.cff of the checkout, else from the copy that is installed beside the licence."""
    import yaml

    data = yaml.safe_load(_text())
    return Release(
        title=data["title"],
        authors=tuple(map(_name, data["authors"])),
        version=str(data["version"]),
        date=str(data.get("date-released", "")),
        license=data.get("license", ""),
        url=data.get("repository-code", data.get("url", "")),
        doi=data.get("doi", ""),
    )


def _text() -> str:
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").exists():
        return (checkout / "CITATION.cff").read_text(encoding="utf-8")
    text = distribution("isoform").read_text("licenses/CITATION.cff")
    if text is None:
        raise RuntimeError("this installation of isoform lacks CITATION.cff")
    return text


def _name(author: dict[str, Any]) -> str:
    parts = (author.get("given-names"), author.get("name-particle"), author.get("family-names"), author.get("name-suffix"))
    return author.get("name") or " ".join(filter(None, parts))
