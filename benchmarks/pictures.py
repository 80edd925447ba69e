"""Draw docs/pictures/*.svg from what isoform's own forms compute. Run by `make pictures`; docs/pictures.md says what they show."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Complex128, Float64, Inexact
from torch import Tensor

from isoform.impl import discretization, hippo, state_space
from isoform.impl.s4 import diagonal, low_rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HERE = Path(__file__).parents[1] / "docs" / "pictures"

TIMES = (1, 2, 3)
"""When memories are looked at, in windows of LegT."""
RATE = 800
"""Inputs in a unit of time."""
SHOWN = (8, 32)
SIZES = (2, 4, 6, 8, 12, 16, 20, 24, 32, 40)
WAVES = ((0.5, 1.0), (1.1, -0.8), (1.9, 0.2))
"""Frequency and size: 0 with two derivatives at the start, for a state of 0 says that nothing was before."""

RULES = {
    "Euler": discretization.euler,
    "backward Euler": discretization.backward_euler,
    "bilinear": discretization.bilinear,
    "zero-order hold": discretization.zoh,
}
STEPS = (0.2, 0.6)
SYSTEMS = ("LegS", "S4D-LegS")
STATES = 4

POLES = (4, 8, 16, 32, 64, 128, 256)
DRAWN = (8, 32)
FREQUENCIES = (1.0, 10.0)
FINE = 1 / 1000
"""The step of the kernels that are drawn."""


# A memory of one signal


def signal(t: Float64[Tensor, "*s"]) -> Float64[Tensor, "*s"]:
    """Three waves."""
    return torch.stack([size * torch.sin(2 * torch.pi * frequency * t) for frequency, size in WAVES]).sum(0)


def window(measure: str, time: float) -> float:
    """How far back a measure looks: to the start, or for one unit."""
    return float(time) if measure == "legs" else 1.0


def memory(measure: str, n: int, time: int) -> Float64[Tensor, " n"]:
    """The state after all inputs up to ``time``, each read in the middle of its step; LegT starts from 0."""
    if measure == "legs":
        return _legs(n)[time * RATE - 1]
    Abar, Bbar = discretization.zoh(*hippo.legt(n), 1 / RATE)
    now = hippo.basis("legt", n, torch.zeros((), dtype=torch.float64))
    return state_space.recurrent(_inputs(time), Abar, Bbar, now, output_final_state=True)[1][0]


@cache
def _legs(n: int) -> Float64[Tensor, "t n"]:
    return hippo.legs_memory(_inputs(TIMES[-1]), n)[0]


def _inputs(time: int) -> Float64[Tensor, "1 t"]:
    return signal((torch.arange(time * RATE, dtype=torch.float64) + 0.5) / RATE)[None]


def projection(measure: str, n: int, time: int) -> Float64[Tensor, " n"]:
    """The coefficients of least squares, which no other n can beat."""
    return hippo.project(measure, n, _past(measure, time, 40 * RATE)[1])


def error(measure: str, coefficients: Float64[Tensor, " n"], time: int) -> float:
    """What the coefficients miss of the past, over the past, both in the mean square of the window."""
    ages, past = _past(measure, time, 4 * RATE)
    return float((hippo.reconstruct(measure, coefficients, ages) - past).norm() / past.norm())


def _past(measure: str, time: int, count: int) -> tuple[Float64[Tensor, " s"], Float64[Tensor, " s"]]:
    """The parts of the window that have passed, at the middle of ``count`` pieces, the oldest first, and the signal there."""
    ages = (torch.arange(count, 0, -1, dtype=torch.float64) - 0.5) / count
    return ages, signal(time - window(measure, time) * ages)


# Where a rule puts an eigenvalue


def image(rule: str, z: Inexact[Tensor, "*s"]) -> Inexact[Tensor, "*s"]:
    """Ā of x' = λ x, for z = Δλ."""
    A = z.unsqueeze(-1)
    return RULES[rule](A, torch.ones_like(A), 1.0, diagonal=True)[0].squeeze(-1)


def continuous(system: str) -> Inexact[Tensor, " n"]:
    """The eigenvalues of LegS, or of S4D-LegS, its normal part."""
    return torch.linalg.eigvals(hippo.legs(STATES).A) if system == "LegS" else diagonal.legs_init(STATES)[0]


def discrete(rule: str, system: str, delta: float) -> Inexact[Tensor, " n"]:
    """The eigenvalues of the discretised system."""
    if system == "LegS":
        return torch.linalg.eigvals(RULES[rule](*hippo.legs(STATES), delta)[0])
    return RULES[rule](*diagonal.legs_init(STATES), delta, diagonal=True)[0]


def largest(rule: str) -> dict[str, tuple[float, ...]]:
    """The largest modulus of each system's eigenvalues, at each step."""
    return {system: tuple(float(discrete(rule, system, delta).abs().max()) for delta in STEPS) for system in SYSTEMS}


def left_half_plane(radius: float = 200.0) -> Complex128[Tensor, " s"]:
    """Its border, as that of half a disk: up the imaginary axis, densest at 0, and back along the arc."""
    line = torch.linspace(-1, 1, 301, dtype=torch.float64)
    height = torch.sinh(line * torch.asinh(torch.tensor(radius, dtype=torch.float64)))
    angle = torch.pi * torch.linspace(0.5, 1.5, 51, dtype=torch.float64)
    return torch.cat([1j * height, torch.polar(torch.full_like(angle, radius), angle)])


# S4D's kernel beside that of S4


def kernels(n: int, length: int) -> tuple[Float64[Tensor, " {length}"], Float64[Tensor, " {length}"]]:
    """The first coefficient of S4-LegS and of S4D-LegS by the bilinear rule, over the step; S4D has half of the input."""
    found = hippo.legs_dplr(n)
    Lambda, P, B, first = (x[None] for x in (found.Lambda, found.P, found.B, found.V[0]))
    whole = low_rank.kernel(Lambda, P, B, first, torch.tensor([FINE], dtype=torch.float64), length)
    Abar, Bbar = discretization.bilinear(Lambda, B / 2, FINE, diagonal=True)
    return whole[0] / FINE, diagonal.kernel(Abar, Bbar, first, length)[0] / FINE


def responses(n: int, frequencies: Float64[Tensor, " s"]) -> tuple[Complex128[Tensor, " s"], Complex128[Tensor, " s"]]:
    """C (iω - A)⁻¹ B of both in continuous time."""
    found = hippo.legs_dplr(n)
    A = torch.diag(found.Lambda) - torch.outer(found.P, found.P.conj())
    shifted = 1j * frequencies[:, None, None] * torch.eye(n) - A
    whole = torch.linalg.solve(shifted, found.B.expand(len(frequencies), n)) @ found.V[0]
    return whole, (_weights(found) / (1j * frequencies[:, None] - found.Lambda)).sum(-1)


def error_in_frequency(n: int, frequency: float) -> float:
    """What S4D's response at one frequency misses, over the response."""
    whole, part = responses(n, torch.tensor([frequency], dtype=torch.float64))
    return float(((part - whole) / whole).abs())


def error_in_time(n: int) -> float:
    """‖k - K‖/‖K‖ over all t >= 0, by the integrals of e^{(λ_i + λ̄_j) t} and e^{(λ_i - 1) t}, as K is e^{-t} (hippo/s4-basis)."""
    found = hippo.legs_dplr(n)
    w = _weights(found)
    own = (w[:, None] * w.conj() / -(found.Lambda[:, None] + found.Lambda.conj())).sum().real
    both = (w / (1 - found.Lambda)).sum().real
    return float((2 * own - 4 * both + 1) ** 0.5)


def _weights(found: hippo.DiagonalPlusLowRank) -> Complex128[Tensor, " n"]:
    """S4D's first coefficient is Re Σ weights e^{λt}."""
    return found.V[0] * found.B / 2


# The drawings

BLACK, GREY, BLUE, RED, GREEN, SKY = "#000000", "#c8c8c8", "#0072b2", "#d55e00", "#009e73", "#56b4e9"
"""Of Okabe and Ito, told apart by the colour-blind."""


def draw_memory() -> Figure:
    """One signal as LegS and LegT remember it at three times, and what they miss as N grows."""
    figure, panels = _panels(2, 4, (13, 5.6), width_ratios=(1, 1, 1, 1.1))
    for row, (measure, name) in zip(panels, (("legs", "LegS, all of the past"), ("legt", "LegT, the last unit of time"))):
        for panel, time in zip(row, TIMES):
            _draw_past(panel, measure, time)
            panel.set_title(f"{name}, t = {time}")
        _draw_errors(row[-1], measure)
    for panel in panels[1]:
        panel.set_xlabel("time")
    panels[1, -1].set_xlabel("N")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle("N coefficients of the past: LegS spreads them over ever more of it, LegT keeps one window and forgets the rest")
    return figure


def _draw_past(panel: Axes, measure: str, time: int) -> None:
    t = torch.linspace(0, time, 60 * time + 1, dtype=torch.float64)
    panel.plot(t, signal(t), color=GREY, linewidth=5, label="the signal")
    ages = torch.linspace(1, 0, 60 * round(window(measure, time)) + 1, dtype=torch.float64)
    for n, color, line in zip(reversed(SHOWN), (BLUE, RED), ("-", "--")):
        rebuilt = hippo.reconstruct(measure, memory(measure, n, time), ages)
        panel.plot(time - window(measure, time) * ages, rebuilt, line, color=color, linewidth=1.5, label=f"rebuilt, N = {n}")
    panel.set(xlim=(0, TIMES[-1]), ylim=(-2.2, 2.2))
    panel.label_outer()


def _draw_errors(panel: Axes, measure: str) -> None:
    for time, color, marker in zip(TIMES, (SKY, GREEN, BLACK), "os^"):
        found = [error(measure, memory(measure, n, time), time) for n in SIZES]
        best = [error(measure, projection(measure, n, time), time) for n in SIZES]
        panel.plot(SIZES, found, marker=marker, markersize=4, color=color, label=f"t = {time}")
        panel.plot(SIZES, best, ":", color=color, label="least squares" if time == TIMES[-1] else None)
    panel.set(yscale="log", title="relative error of what is rebuilt", ylim=(3e-6, 3))
    panel.minorticks_off()
    panel.legend(loc="upper right")


def draw_stability() -> Figure:
    """Where each rule is stable, and where it puts the left half plane and the eigenvalues of LegS."""
    figure, panels = _panels(2, len(RULES), (13, 7))
    for rule, above, below in zip(RULES, *panels):
        _draw_region(above, rule)
        _draw_image(below, rule)
        below.set_title("\n".join(f"{system}: moduli up to {a:.2f} and {b:.2f}" for system, (a, b) in largest(rule).items()))
    panels[0, 0].set_ylabel("the plane of Δλ\nshaded: stable")
    panels[1, 0].set_ylabel("the plane of the rule's eigenvalue\nshaded: from the left half plane")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    figure.suptitle("All but Euler's rule put the left half plane into the unit disk; bilinear and zero-order hold put nothing else there")
    return figure


def _draw_region(panel: Axes, rule: str) -> None:
    x, y = torch.linspace(-5, 3, 97, dtype=torch.float64), torch.linspace(-4, 4, 97, dtype=torch.float64)
    modulus = image(rule, torch.complex(*torch.meshgrid(x, y, indexing="xy"))).abs()
    panel.contourf(x, y, modulus, levels=[-1, 1], colors=[SKY], alpha=0.35)
    panel.axvline(0, color=BLACK, linewidth=0.8)
    _draw_points(panel, {(system, delta): delta * continuous(system) for system in SYSTEMS for delta in STEPS})
    panel.set(xlim=(-5, 3), ylim=(-4, 4), title=rule)
    _draw_plane(panel, range(-4, 3, 2), range(-4, 5, 2))


def _draw_image(panel: Axes, rule: str) -> None:
    from matplotlib.patches import Circle

    border = image(rule, left_half_plane())
    panel.fill(border.real, border.imag, color=SKY, alpha=0.35, linewidth=0)
    panel.add_patch(Circle((0, 0), 1, fill=False, edgecolor=BLACK, linewidth=0.8))
    _draw_points(panel, {(system, delta): discrete(rule, system, delta) for system in SYSTEMS for delta in STEPS})
    panel.set(xlim=(-3, 3), ylim=(-3, 3))
    _draw_plane(panel, range(-2, 3), range(-2, 3))


def _draw_plane(panel: Axes, x: Iterable[int], y: Iterable[int]) -> None:
    panel.set(aspect="equal", xticks=list(x), yticks=list(y))
    panel.tick_params(labelleft=panel.get_subplotspec().is_first_col())


def _draw_points(panel: Axes, points: Mapping[tuple[str, float], Tensor]) -> None:
    for (system, delta), z in points.items():
        style = {"color": BLUE if delta == STEPS[0] else RED, "marker": "o" if system == "LegS" else "D"}
        z = z.to(torch.complex128)
        panel.scatter(z.real, z.imag, s=22, edgecolor="white", linewidth=0.6, zorder=3, label=f"{system}, Δ = {delta}", **style)


def draw_kernel() -> Figure:
    """S4D-LegS beside S4-LegS: the first coefficient in time and in frequency, and the error as N grows."""
    figure, panels = _panels(2, 2, (11, 7))
    for panel, n in zip(panels[0], DRAWN):
        _draw_kernel(panel, n)
    _draw_responses(panels[1, 0])
    _draw_distances(panels[1, 1])
    figure.suptitle("S4D-LegS comes near S4-LegS at every fixed frequency as N grows, and never in time")
    return figure


def _draw_kernel(panel: Axes, n: int) -> None:
    t = torch.arange(round(2 / FINE), dtype=torch.float64) * FINE
    whole, part = kernels(n, len(t))
    panel.plot(t, part, color=RED, linewidth=0.8, label=f"S4D-LegS, relative L² error {error_in_time(n):.3f}")
    panel.plot(t, whole, color=BLACK, linewidth=2, label="S4-LegS, diagonal plus low rank")
    panel.set(title=f"kernel of the first coefficient, N = {n}", xlabel="t", ylim=(-0.7, 2.2))
    panel.legend(loc="upper right")


def _draw_responses(panel: Axes) -> None:
    frequencies = torch.logspace(-1, 4, 401, dtype=torch.float64)
    for n, color in zip(DRAWN, (BLUE, RED)):
        whole, part = responses(n, frequencies)
        panel.plot(frequencies, part.abs(), color=color, linewidth=1.2, label=f"S4D-LegS, N = {n}")
    panel.plot(frequencies, whole.abs(), "--", color=BLACK, linewidth=1.5, label="S4-LegS")
    panel.set(title="response |C (iω - A)⁻¹ B| of the first coefficient", xlabel="ω", xscale="log", yscale="log")
    panel.legend(loc="lower left")


def _draw_distances(panel: Axes) -> None:
    in_time = [error_in_time(n) for n in POLES]
    panel.plot(POLES, in_time, "o-", color=BLACK, label=f"kernel, L² in time: {in_time[-1]:.4f} at N = {POLES[-1]}")
    for frequency, color, marker in zip(FREQUENCIES, (GREEN, BLUE), "s^"):
        found = [error_in_frequency(n, frequency) for n in POLES]
        label = f"response at ω = {frequency:.0f}: {found[-1]:.4f} at N = {POLES[-1]}"
        panel.plot(POLES, found, marker=marker, color=color, label=label)
    panel.axhline(0.5**0.5, color=BLACK, linestyle=":", linewidth=1, label="1/√2 = 0.7071")
    panel.set(title="relative error of S4D-LegS as N grows", xlabel="N", xscale="log", yscale="log")
    panel.set_xticks(POLES, [str(n) for n in POLES])
    panel.minorticks_off()
    panel.legend(loc="lower left")


def _panels(rows: int, columns: int, size: tuple[float, float], **grid: Iterable[float]) -> tuple[Figure, Any]:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams |= {"svg.hashsalt": "isoform", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8}
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", gridspec_kw=grid)


PICTURES: dict[str, Callable[[], Figure]] = {"memory": draw_memory, "stability": draw_stability, "kernel": draw_kernel}


def save(folder: Path, suffix: str = "svg") -> list[Path]:
    """Draw every picture into a folder: the same bytes every time on one machine."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        figure = draw()
        figure.savefig(folder / f"{name}.{suffix}", metadata={"Date": None} if suffix == "svg" else None)
        plt.close(figure)
    return [folder / f"{name}.{suffix}" for name in PICTURES]


def main() -> None:
    """Draw the pictures of the documentation, or into another folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=HERE)
    for path in save(parser.parse_args().to):
        print(path)


if __name__ == "__main__":
    main()
