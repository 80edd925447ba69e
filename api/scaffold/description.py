"""What a new column is, in the words of the command line: sizes, formulas, domains, source."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from isoform.derivations.guests import NAME

SIZE = re.compile(r"[A-Za-z]\w*|1")
TAKEN = {
    "t", "update", "read", "layer", "derive", "place", "variant", "le", "indices", "Term", "Claim", "Source", "Equation", "Statement",
    "Direct", "Unfold", "DECLARATION", "DECLARATIONS", "STATE", "PARTS", "STEP", "LEFT_OUT", "MISTAKE", "OWN", "CLAIMS",
}  # fmt: skip
"""Names that the written file uses itself."""


class ScaffoldError(ValueError):
    """A column that cannot be made; the message is a sentence that says what is wrong and what is allowed."""


@dataclass(frozen=True)
class Description:
    """A column as described: names with their sizes (1, d_k or d_v*d_k), and formulas over those names, in Python.

    ``logs`` are the inputs that the forms are given by their logarithm, with the names of those arguments.
    """

    name: str
    inputs: Mapping[str, str]
    parameters: Mapping[str, str]
    state: Mapping[str, str]
    update: Mapping[str, str]
    read: str
    domains: Mapping[str, str]
    source: str
    where: str
    logs: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """The name of its files."""
        return self.name.replace("-", "_")

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are named, each once."""
        shapes = (*self.inputs.values(), *self.parameters.values(), *self.state.values())
        return tuple(dict.fromkeys(size for shape in shapes for size in shape.split("*") if size != "1"))

    @property
    def coupled(self) -> bool:
        """Whether the update of a state uses another one."""
        return any((uses(formula) & self.state.keys()) - {name} for name, formula in self.update.items())


def describe(
    name: str,
    *,
    inputs: str,
    state: str,
    update: Iterable[str],
    read: str,
    domains: Iterable[str],
    source: str,
    where: str,
    parameters: str = "",
    logs: Iterable[str] = (),
) -> Description:
    """Return the description that words amount to. Raises ScaffoldError.

    >>> describe("sum", inputs="q:d_k k:d_k v:d_v", state="H:d_v*d_k", update=["H + v * k.T"], read="H * q",
    ...          domains=["q, k, v: real"], source="Katharopoulos et al., Transformers are RNNs", where="equation 16").sizes
    ('d_k', 'd_v')
    """
    check_name(name)
    for what, text in (("--source", source), ("--where", where)):
        if not text.strip():
            raise ScaffoldError(f"{name} needs {what}: the paper, and the equation or section, that the layer comes from")
    known: dict[str, str] = {}
    groups = []
    for words, flag in ((inputs, "--inputs"), (parameters, "--parameters"), (state, "--state")):
        groups.append(read_sizes(words, flag, known))
        known |= groups[-1]
    given, fixed, kept = groups
    if not kept or not given:
        raise ScaffoldError(f"{name} needs --inputs and a --state, as in --inputs 'k:d_k v:d_v' --state 'H:d_v*d_k'")
    updates = _updates(tuple(update), tuple(kept))
    for what, formula, allowed in (
        *((f"the update of {n}", u, ()) for n, u in updates.items()),
        ("--read", read, [f"{n}_before" for n in kept]),
    ):
        check_formula(what, formula, {*known, *allowed}, named_sizes(known))
    lie = _domains(tuple(domains), (*given, *fixed))
    return Description(name, given, fixed, kept, updates, read, lie, source, where, read_logs(tuple(logs), given, known))


def check_name(name: str) -> None:
    """Raise ScaffoldError for a name that no column can have."""
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ScaffoldError(
            f"{name!r} is no name of a column: lower-case letters, digits and single hyphens are allowed, as in gated-delta-rule"
        )


def uses(formula: str) -> set[str]:
    """The names that a formula uses."""
    return {node.id for node in ast.walk(ast.parse(formula, mode="eval")) if isinstance(node, ast.Name)}


def functions() -> frozenset[str]:
    """The functions that a formula may call."""
    from isoform.derivations.layer import functions as module

    return frozenset(n for n, f in vars(module).items() if not n.startswith("_") and getattr(f, "__module__", "") == module.__name__)


TERMS = frozenset({"Conj", "Diag", "Eye", "Hadamard", "Ind", "Num", "norm2"})
"""What a formula may use of the language of terms."""


def read_sizes(words: str, flag: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return names with their sizes, beside those that are known already. Raises ScaffoldError."""
    from isoform.derivations.layer.declare import TAKEN as TIMES

    found: dict[str, str] = {}
    for word in re.split(r"[,\s]+", words.strip()) if words.strip() else ():
        name, colon, shape = word.partition(":")
        if not (colon and name.isidentifier() and all(map(SIZE.fullmatch, shape.split("*"))) and shape.count("*") <= 1):
            raise ScaffoldError(f"{flag} says {word!r}; a name and its size are needed, as k:d_k, beta:1 or H:d_v*d_k")
        if keyword.iskeyword(name) or name in TAKEN or name in TERMS | functions():
            raise ScaffoldError(f"{flag} says {word!r}, and the name {name!r} is taken; another one is needed")
        if name in found or name in known:
            raise ScaffoldError(f"{name!r} is named twice; inputs, parameters and states need names of their own")
        found[name] = shape
    sizes = named_sizes({**known, **found})
    if both := sizes & {*known, *found}:
        raise ScaffoldError(f"{min(both)!r} is a name and a size; one of them needs another name")
    if taken := sizes & {*TIMES, *TAKEN, *TERMS, *functions()}:
        raise ScaffoldError(f"{flag} has a size {min(taken)!r}, and that name is taken; another one is needed")
    return found


def named_sizes(shapes: Mapping[str, str]) -> set[str]:
    """The sizes that the shapes of names speak of, numbers aside."""
    return {size for shape in shapes.values() for size in shape.split("*") if size != "1"}


def _updates(formulas: tuple[str, ...], states: tuple[str, ...]) -> dict[str, str]:
    """The update of each state: a formula, or with several states one `NAME = formula` for each."""
    if len(states) == 1 and len(formulas) == 1 and not re.match(rf"{states[0]}\s*=(?!=)", formulas[0]):
        return {states[0]: formulas[0].strip()}
    found = {name.strip(): formula.strip() for name, _, formula in (text.partition("=") for text in formulas)}
    if found.keys() != set(states) or len(formulas) != len(states):
        raise ScaffoldError(f"--update is needed once for each state, as --update '{states[0]} = …'; the states are {', '.join(states)}")
    return {name: found[name] for name in states}


def check_formula(what: str, formula: str, names: set[str], sizes: set[str]) -> None:
    """Raise ScaffoldError for what is no formula over these names and sizes."""
    try:
        used = uses(formula)
    except (SyntaxError, ValueError) as error:
        raise ScaffoldError(f"{what} is {formula!r}, which is no formula: {getattr(error, 'msg', error)}") from None
    unknown = sorted(used - names - sizes - TERMS - functions())
    if unknown:
        there = f"there are {', '.join(sorted(names | sizes))}, and the functions {', '.join(sorted(TERMS | functions()))}"
        raise ScaffoldError(f"{what} uses {unknown[0]!r}, which is no input, parameter, state or size; {there}")


def read_logs(words: tuple[str, ...], inputs: Mapping[str, str], known: Mapping[str, str], flag: str = "--log") -> dict[str, str]:
    """Return the arguments for logarithms, by input. Raises ScaffoldError."""
    names = {*known, *named_sizes(known)}
    found: dict[str, str] = {}
    for text in words:
        name, _, argument = (part.strip() for part in text.partition("="))
        if name not in inputs or not argument.isidentifier():
            raise ScaffoldError(f"{flag} says {text!r}; an input and the name of the argument for its logarithm are needed, as 'a=g'")
        if argument in {*names, *found.values()} or name in found:
            raise ScaffoldError(f"{flag} says {text!r}, and one of these names is taken; another one is needed")
        found[name] = argument
    return found


def _domains(words: tuple[str, ...], names: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in words:
        listed, _, domain = text.partition(":")
        for name in re.split(r"[,\s]+", listed.strip()):
            if name not in names or not domain.strip():
                raise ScaffoldError(
                    f"--domain says {text!r}; an input or parameter and where it lies are needed, as 'beta: real, 0 <= beta <= 1'"
                )
            found[name] = domain.strip()
    missing = [name for name in names if name not in found]
    if missing:
        raise ScaffoldError(
            f"--domain is needed for {', '.join(missing)}: claims hold under assumptions, as 'q, k: real' or 'beta: real, 0 <= beta <= 1'"
        )
    return {name: found[name] for name in names}
