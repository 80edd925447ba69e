"""Gates as the three functions of the general recurrence: the LSTM, unit by unit.

    c_t = σ(f_t) c_{t-1} + σ(i_t) tanh(g_t)        h_t = σ(o_t) tanh(c_t)

with pre-activations w x_t + u h_{t-1} + b, for one unit; h_{t-1} are the outputs of all units, here any sequence. The
state of the recurrence is the cell c.
"""

from __future__ import annotations

from ..claim import Claim, Source, variant
from ..kernel.formulas import And, Assumption, Equation, Formula, Statement
from ..kernel.scripts import Direct, Each, Given, Hypothesis, Induction, Part, Unfold
from ..kernel.terms import Exp, Index, Num, Term, Zero, indices, le, named, recurrence, scalar, vector, vectors
from .recurrence import NOTE, d_in, run, t, x

HOCHREITER = "Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 9 (1997)"
GERS = "Gers, Schmidhuber, Cummins, Learning to Forget, Neural Computation 12 (2000)"

(d_h,) = indices("d_h")
h = vectors("h", d_h)
c0 = scalar("c0")
GATES = ("f", "i", "g", "o")
bias = {gate: scalar(f"b_{gate}") for gate in GATES}
inwards = {gate: vector(f"w_{gate}", d_in) for gate in GATES}
back = {gate: vector(f"u_{gate}", d_h) for gate in GATES}


def sigmoid(z: Term) -> Term:
    """The logistic function."""
    return named("σ", Num(1) / (1 + Exp(-z)), z)


def tanh(z: Term) -> Term:
    """The hyperbolic tangent."""
    return named("tanh", Num(1) - 2 * sigmoid(Num(-2) * z), z)


def seen(gate: str, inputs: Term) -> Term:
    """A pre-activation that sees the input only."""
    return inwards[gate].T * inputs + bias[gate]


def lstm(gate: str, at: Index) -> Term:
    """A pre-activation that sees the outputs of the step before too."""
    return seen(gate, x[at]) + back[gate].T * h[at - 1]


def reflect(inputs: Term, cell: Term) -> Term:
    """f_A: what the forget gate leaves of the cell."""
    return sigmoid(seen("f", inputs)) * cell


def take_in(inputs: Term) -> Term:
    """f_B: the candidate, through the input gate."""
    return sigmoid(seen("i", inputs)) * tanh(seen("g", inputs))


def read(inputs: Term, cell: Term) -> Term:
    """f_C: the cell, through the output gate."""
    return sigmoid(seen("o", inputs)) * tanh(cell)


cell = recurrence("c", c0, lambda t, c: sigmoid(lstm("f", t)) * c + sigmoid(lstm("i", t)) * tanh(lstm("g", t)))
H = run(x, c0, lambda t, H: reflect(x[t], H), lambda t, x: take_in(x[t]), "S")

y, z = vector("y", d_in), vector("z", d_in)
p, q = scalar("p"), scalar("q")


def second_difference(f: Term) -> Equation:
    """What is 0 if the update is a function of the cell plus a function of the input."""

    def update(inputs: Term, state: Term) -> Term:
        return reflect(inputs, state) + take_in(inputs)

    return Equation(update(y, p) - update(y, q) - update(z, p) + update(z, q), f)


def instance(cells: Term = cell[t], difference: Term | None = None) -> Formula:
    """The cell is the state, the output is read from it; and the forget gate has to see the input."""
    not_zero = (sigmoid(seen("f", y)) - sigmoid(seen("f", z))) * (p - q)
    return And(
        Equation(cells, H[t]),
        Equation(sigmoid(lstm("o", t)) * tanh(cells), read(x[t], H[t])),
        second_difference(not_zero if difference is None else difference),
    )


NAMES = {"f": "forget gate", "i": "input gate", "g": "candidate", "o": "output gate"}
no_return = tuple(
    Assumption(f"the {NAMES[gate]} reads x only", Equation(back[gate], Zero(d_h, 1)), solve={back[gate]: Zero(d_h, 1)}) for gate in GATES
)
given = tuple(Given(a.name) for a in no_return)
gates = Statement(instance(), le(1, t), no_return)

LSTM_GATES = Claim(
    id="rnn/lstm-gates",
    title="a unit of an LSTM whose gates read the inputs only is an instance with f_A and f_C that see x_t; its state is the cell",
    statement=gates,
    sources=(
        Source(NOTE, "section 1.3.1: f_B is the input gate, f_A the forget gate, f_C the output gate", "of the LSTM"),
        Source(GERS, "the cell with a forget gate"),
        Source(HOCHREITER, "the cell; its gates read the outputs of the step before"),
    ),
    proof=Each(
        (
            Induction(
                t,
                Direct((Unfold(cell[1]), Unfold(H[1]), *given), "the first step"),
                Direct((Hypothesis(), *given), "the same gates"),
                start=1,
            ),
            Direct((Part(1), *given), "the same cell is read"),
            Direct(note="what the input adds cancels"),
        )
    ),
    expected="qualified",
    as_written=Statement(instance(), le(1, t)),
    near_misses=(
        *[variant(gates, f"the {NAMES[gate]} reads h too", drop=a.name) for gate, a in zip(GATES, no_return, strict=True)],
        variant(gates, "a forget gate that sees t only", instance(difference=Num(0))),
    ),
)

CLAIMS = (LSTM_GATES,)
