"""The numbers behind the pictures, each against another road to it; that they are drawn; and that the drawings shown are of today."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import integrate, signal

from isoform.impl import hippo

ROOT = Path(__file__).parents[2]
SHOWN = ROOT / "docs" / "pictures"
EPS = np.finfo(float).eps
PLANE = torch.complex(*torch.meshgrid(torch.linspace(-6, 6, 60).double(), torch.linspace(-9, 9, 61).double(), indexing="ij"))
"""Without a point on the imaginary axis, or on a border of Euler's."""


@pytest.fixture
def pictures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.pictures")


def texts(svg):
    return re.findall(r"<!-- (.*?) -->", svg.read_text(encoding="utf-8"), re.DOTALL)


def test_the_memories_are_those_of_the_systems(pictures):
    u = pictures.signal((torch.arange(pictures.RATE).double() + 0.5) / pictures.RATE)
    assert torch.equal(pictures.memory("legs", 8, 1), hippo.legs_memory(u[None], 8)[0, -1])
    A, B = (x.numpy() for x in hippo.legt(8))
    Abar, Bbar, *_ = signal.cont2discrete((A, B[:, None], np.eye(8), np.zeros((8, 1))), 1 / pictures.RATE)
    state = np.zeros(8)
    for value in u.numpy():
        state = Abar @ state + Bbar[:, 0] * value
    found = pictures.memory("legt", 8, 1).numpy()
    assert np.abs(found - state).max() <= pictures.RATE * 8 * EPS * np.abs(state).max(), "a rounding of 8 products every step"


def test_more_coefficients_miss_less_and_a_longer_past_is_missed_more(pictures):
    few, many = pictures.SHOWN
    missed = {
        (measure, n): [pictures.error(measure, pictures.memory(measure, n, time), time) for time in pictures.TIMES]
        for measure in ("legs", "legt")
        for n in (few, many)
    }
    for measure in ("legs", "legt"):
        assert all(a > b for a, b in zip(missed[measure, few], missed[measure, many]))
    assert sorted(missed["legs", few]) == missed["legs", few], "LegS stretches"
    assert missed["legs", few][-1] > missed["legt", few][-1], "LegT does not"
    forgotten = pictures.error("legs", pictures.memory("legt", many, 3), 3)
    assert forgotten > missed["legs", few][-1], "a window stands for nothing but itself"


@pytest.mark.parametrize("measure", ["legs", "legt"])
def test_least_squares_misses_less_than_any_neighbour(pictures, measure):
    best = pictures.projection(measure, 6, 2)
    least = pictures.error(measure, best, 2)
    assert least < pictures.error(measure, pictures.projection(measure, 4, 2), 2)
    for n in range(6):
        for move in (-0.05, 0.05):
            other = best.clone()
            other[n] += move
            assert pictures.error(measure, other, 2) > least


def test_where_the_rules_are_stable(pictures):
    inside = {rule: pictures.image(rule, PLANE).abs() < 1 for rule in pictures.RULES}
    left = PLANE.real < 0
    for rule in ("bilinear", "zero-order hold"):
        assert torch.equal(inside[rule], left)
    assert torch.equal(inside["Euler"], (PLANE + 1).abs() < 1)
    assert torch.equal(inside["backward Euler"], (PLANE - 1).abs() > 1)
    assert bool(inside["backward Euler"][left].all())
    assert bool(inside["Euler"].any()) and not bool(inside["Euler"][left].all())


def test_the_eigenvalues_are_the_images_of_the_systems(pictures):
    assert np.sort(pictures.continuous("LegS").real.numpy()) == pytest.approx([-4, -3, -2, -1], rel=1e-12)
    for rule in pictures.RULES:
        for system in pictures.SYSTEMS:
            for delta in pictures.STEPS:
                want = pictures.image(rule, delta * pictures.continuous(system)).numpy()
                found = pictures.discrete(rule, system, delta).numpy()
                assert np.abs(np.sort_complex(found) - np.sort_complex(want)).max() <= 1e3 * EPS, "eigenvectors of condition below 1e3"
    short, long = ({s: m[i] for s, m in pictures.largest("Euler").items()} for i in (0, 1))
    assert short["LegS"] < 1 < min(short["S4D-LegS"], *long.values())
    assert all(m < 1 for rule in pictures.RULES if rule != "Euler" for moduli in pictures.largest(rule).values() for m in moduli)


def turns(border, points):
    """How often a closed line goes around each point."""
    around = np.append(border, border[0]) - points[:, None]
    return np.round(np.angle(around[:, 1:] / around[:, :-1]).sum(1) / (2 * np.pi)).astype(int)


@pytest.mark.parametrize(
    ("rule", "inside", "outside"),
    [
        ("Euler", [-2.9, 0.9, 2.9j], [1.1, 2, 1.1 + 2.9j]),
        ("backward Euler", [0.1, 0.9, 0.5 + 0.4j], [-0.1, 1.1, 0.5 + 0.6j]),
        ("bilinear", [-0.95, 0, 0.95, 0.95j], [-1.05, 1.05, 0.8 - 0.8j]),
        ("zero-order hold", [-0.95, 0.01, 0.95, 0.95j, -0.3 - 0.3j], [-1.05, 1.05, 0.8 - 0.8j]),
    ],
)
def test_the_image_of_the_left_half_plane_is_what_its_border_goes_around(pictures, rule, inside, outside):
    border = pictures.image(rule, pictures.left_half_plane()).numpy()
    assert (turns(border, np.array(inside)) != 0).all()
    assert (turns(border, np.array(outside)) == 0).all()


@pytest.mark.parametrize("n", [3, 8])
def test_the_kernels_are_those_of_the_systems(pictures, n):
    """LegS's first coefficient is c' = u - c, whatever n; S4D's against powers, in the coordinates of LegS."""
    length, half = 500, pictures.FINE / 2
    whole, part = (k.numpy() for k in pictures.kernels(n, length))
    want = ((1 - half) / (1 + half)) ** np.arange(length) / (1 + half)
    A, B = (x.numpy() for x in hippo.legs(n))
    normal, eye = A + np.outer(B, B) / 2, np.eye(n)
    state, powers = np.linalg.solve(eye - half * normal, B / 2), []
    for _ in range(length):
        powers.append(state[0])
        state = np.linalg.solve(eye - half * normal, (eye + half * normal) @ state)
    size = np.linalg.norm(B) * length * n * EPS
    assert np.abs(whole - want).max() <= size / pictures.FINE, "C̃ loses the digits of a step"
    assert np.abs(part - powers).max() <= size
    assert np.abs(whole - part).max() > 0.1


@pytest.mark.parametrize("n", [2, 4])
def test_errors_in_time_are_integrals(pictures, n):
    A, B = (x.numpy() for x in hippo.legs(n))
    values, vectors = np.linalg.eig(A + np.outer(B, B) / 2)
    weights = vectors[0] * np.linalg.solve(vectors, B / 2)
    square, off = integrate.quad(lambda t: ((weights * np.exp(values * t)).sum().real - np.exp(-t)) ** 2, 0, 60, limit=500)
    assert abs(pictures.error_in_time(n) ** 2 / 2 - square) <= off + 1e-12


def test_responses_are_those_of_the_systems(pictures):
    frequencies = torch.tensor([0.0, 1.0, 30.0], dtype=torch.float64)
    whole, part = pictures.responses(8, frequencies)
    assert np.abs(whole.numpy() * (1 + 1j * frequencies.numpy()) - 1).max() <= 1e3 * EPS
    A, B = (x.numpy() for x in hippo.legs(8))
    normal = A + np.outer(B, B) / 2
    want = [np.linalg.solve(1j * w * np.eye(8) - normal, B / 2)[0] for w in frequencies.numpy()]
    assert np.abs(part.numpy() - want).max() <= 1e3 * EPS


def test_s4d_comes_near_in_frequency_and_not_in_time(pictures):
    sizes = pictures.POLES
    gaps = [0.5**0.5 - pictures.error_in_time(n) for n in sizes]
    assert all(a > 2 * b > 0 for a, b in zip(gaps, gaps[1:])), "towards 1/√2, from below"
    for frequency in pictures.FREQUENCIES:
        errors = [pictures.error_in_frequency(n, frequency) for n in sizes]
        assert all(a > b for a, b in zip(errors, errors[1:]))
        assert 1.8 < errors[-2] / errors[-1] < 2.2, "like 1/N"


def test_the_numbers_shown_are_those_of_today(pictures):
    stability, kernel = ("\n".join(texts(SHOWN / f"{name}.svg")) for name in ("stability", "kernel"))
    moduli = [(system, *found) for rule in pictures.RULES for system, found in pictures.largest(rule).items()]
    shown = re.findall(r"^.*: moduli up to .*$", stability, re.MULTILINE)
    assert shown == [f"{system}: moduli up to {short:.2f} and {long:.2f}" for system, short, long in moduli]
    for n in pictures.DRAWN:
        assert f"relative L² error {pictures.error_in_time(n):.3f}" in kernel
    n = pictures.POLES[-1]
    for found in (pictures.error_in_time(n), *(pictures.error_in_frequency(n, w) for w in pictures.FREQUENCIES)):
        assert f": {found:.4f} at N = {n}" in kernel


def test_the_page_shows_every_picture_and_names_claims_that_exist(pictures):
    from isoform.derivations.registry import column

    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    names = re.findall(r"!\[[^\]]+\]\(pictures/(\w+)\.svg\)", page)
    assert names == list(pictures.PICTURES)
    assert {path.name for path in SHOWN.iterdir()} == {f"{name}.svg" for name in names}
    assert all(path.stat().st_size < 200_000 for path in SHOWN.iterdir())
    named = set(re.findall(r"`((?:hippo|discretization|s4)/[a-z0-9-]+)`", page))
    assert named
    assert named <= {claim.id for name in ("hippo", "discretization", "s4") for claim in column(name)}


def test_they_are_drawn_and_drawn_the_same_twice(pictures, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for path in pictures.save(tmp_path):
        assert texts(path) == texts(SHOWN / path.name)
    monkeypatch.setattr(pictures, "PICTURES", {"stability": pictures.draw_stability})
    (again,) = pictures.save(tmp_path / "again")
    assert again.read_bytes() == (tmp_path / "stability.svg").read_bytes()
