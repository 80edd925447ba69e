"""Which claims are lemmas of which: a picture in layers, every lemma to the left of what rests on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CHARACTER, LINE, GAP, MARGIN = 7.2, 30.0, 70.0, 12.0
SWEEPS = 8


@dataclass(frozen=True)
class Node:
    """A box of the picture: what it says, and its place; ``y`` is that of its middle."""

    key: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class Edge:
    """A line from a lemma to what rests on it."""

    source: Node
    target: Node

    @property
    def path(self) -> str:
        """The line as SVG draws it."""
        x, y, end, to = self.source.x + self.source.width, self.source.y, self.target.x, self.target.y
        bend = (end - x) / 2
        return f"M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {end - bend:.1f} {to:.1f} {end:.1f} {to:.1f}"


@dataclass(frozen=True)
class Picture:
    """A graph with places for everything."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


def picture(rests_on: Mapping[str, Iterable[str]]) -> Picture:
    """Return the picture of what rests on what; every key and everything that it rests on is a node.

    Raises ValueError where things rest on each other in a circle.
    """
    below = {key: tuple(dict.fromkeys(found)) for key, found in rests_on.items()}
    for key in [k for found in below.values() for k in found]:
        below.setdefault(key, ())
    nodes: dict[str, Node] = {}
    top = MARGIN
    for part in sorted(_components(below), key=lambda keys: (-len(keys), min(keys))):
        placed = _place({key: below[key] for key in below if key in part}, top)
        top = max(node.y for node in placed) + LINE
        nodes |= {node.key: node for node in placed}
    edges = tuple(Edge(nodes[source], nodes[target]) for target, found in below.items() for source in found)
    width = max((node.x + node.width for node in nodes.values()), default=0.0) + MARGIN
    return Picture(tuple(nodes.values()), edges, width, top)


def layers(below: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return the length of the longest chain of lemmas under each key. Raises ValueError for a circle."""
    depth: dict[str, int] = {}
    left = dict(below)
    while left:
        ready = [key for key, found in left.items() if all(k in depth for k in found)]
        if not ready:
            raise ValueError(f"these rest on each other in a circle: {', '.join(sorted(left))}")
        for key in ready:
            depth[key] = max((depth[k] + 1 for k in left.pop(key)), default=0)
    return depth


def _components(below: Mapping[str, tuple[str, ...]]) -> list[set[str]]:
    out: list[set[str]] = []
    for key, found in below.items():
        joined = {key, *found}
        touching = [part for part in out if part & joined]
        out = [part for part in out if part not in touching] + [joined.union(*touching)]
    return out


def _place(below: Mapping[str, tuple[str, ...]], top: float) -> list[Node]:
    """Give places to the nodes of one component, from a height downwards."""
    depth = layers(below)
    columns = [[key for key in below if depth[key] == n] for n in range(max(depth.values()) + 1)]
    near = {key: [*below[key], *(k for k in below if key in below[k])] for key in below}
    heights = _heights(columns, near)
    highest = min(heights.values())
    out, x = [], MARGIN
    for column in columns:
        width = max(CHARACTER * len(key) for key in column) + 2 * MARGIN
        out += [Node(key, x, top + LINE / 2 + heights[key] - highest, width) for key in column]
        x += width + GAP
    return out


def _heights(columns: list[list[str]], near: Mapping[str, list[str]]) -> dict[str, float]:
    """Heights at which every node is as close to its neighbours as the others of its column allow."""
    heights = {key: LINE * n for column in columns for n, key in enumerate(column)}
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = {key: sum(heights[k] for k in near[key]) / len(near[key]) if near[key] else 0.0 for key in column}
            column.sort(key=lambda key: (wanted[key], heights[key]))
            heights |= _spread(column, wanted)
    return heights


def _spread(column: list[str], wanted: Mapping[str, float]) -> dict[str, float]:
    """Heights a line apart or more, in order; what crowds together does so around where it wants to be."""
    groups: list[list[str]] = []
    starts: list[float] = []
    for key in column:
        groups.append([key])
        starts.append(wanted[key])
        while len(groups) > 1 and starts[-2] + LINE * len(groups[-2]) > starts[-1]:
            last = groups.pop()
            starts.pop()
            groups[-1] += last
            starts[-1] = sum(wanted[k] - LINE * n for n, k in enumerate(groups[-1])) / len(groups[-1])
    return {key: start + LINE * n for group, start in zip(groups, starts, strict=True) for n, key in enumerate(group)}
