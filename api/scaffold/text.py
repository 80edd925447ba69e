"""The text of a new column's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from isoform.scaffold.description import TERMS, Description, functions, uses
from isoform.scaffold.place import Place

DERIVATIONS = Template('''"""$title: one declaration, what follows from it, and a claim of its own.

$formulas

Source: $source, $where.
"""

from __future__ import annotations

$imports
$sizes

$functions


DECLARATION = layer(
    $name,
    inputs=$inputs,$parameters
    state=$state,
    update=$update,
    read=read,
    domains={
$domains
    },
    source=$quoted_source,
)
DECLARATIONS = (DECLARATION,)
${own}CLAIMS = (*derive(DECLARATION), OWN)
''')
OWN = Template("""
$header

STEP = Statement(Equation($now, $once), le(1, t))
LEFT_OUT = Equation($now, $before)
# True as it stands. Put a mistake into it that somebody might make: an index off by one, a sign, two factors swapped.
MISTAKE = Equation($now, $once)
OWN = Claim(
    $id,
    "what a token does to the state",
    STEP,
    (Source(DECLARATION.source, $where),),
    (variant(STEP, "the token is left out", LEFT_OUT), variant(STEP, "FILL IN: the mistake", MISTAKE)),
    Direct((Unfold($whole[t]),), "the update at t"),
    operator=DECLARATION,
)

""")
PROPERTIES = Template('''"""$title under test: everything is taken from its declaration."""

from __future__ import annotations

from $declarations import DECLARATION
from isoform.properties.declared import operator_of

OPERATORS = (operator_of(DECLARATION$logs),)
''')


def derivations(d: Description) -> str:
    """Return the file of the derivations floor."""
    single = len(d.state) == 1
    return DERIVATIONS.substitute(
        title=title(d.name),
        formulas="\n".join(_in_docstring(f"    {n} ← {u}") for n, u in {**d.update, "output": d.read}.items()),
        source=_in_docstring(d.source),
        where=_in_docstring(d.where),
        imports=_imports(d),
        sizes=f'\n{_tuple(d.sizes)} = indices("{" ".join(d.sizes)}")\n' if d.sizes else "",
        functions="\n\n\n".join((*(_function(_update(d, n), d, u) for n, u in d.update.items()), _function("read", d, d.read))),
        name=_quoted(d.name),
        inputs=_table(d.inputs),
        parameters=f"\n    parameters={_table(d.parameters)}," if d.parameters else "",
        state=_table(d.state),
        update="update" if single else "{" + ", ".join(f"{_quoted(n)}: {_update(d, n)}" for n in d.state) + "}",
        domains="\n".join(f"        {_quoted(n)}: {_quoted(words)}," for n, words in d.domains.items()),
        quoted_source=_quoted(d.source),
        own=_own(d),
    )


def properties(d: Description, place: Place) -> str:
    """Return the file of the properties floor."""
    logs = ", logs={" + ", ".join(f"{_quoted(n)}: {_quoted(g)}" for n, g in d.logs.items()) + "}" if d.logs else ""
    return PROPERTIES.substitute(title=title(d.name), declarations=place.module("derivations", d.module), logs=logs)


def title(name: str) -> str:
    """Return a column's name as the beginning of a sentence."""
    return name.replace("-", " ").capitalize()


def _own(d: Description) -> str:
    """The claim to fill in: what a token does to the first state, by its formula."""
    first = next(iter(d.state))
    values = {**{n: _part(d, n, "t - 1") for n in d.state}, **{n: f"{n}[t]" for n in d.inputs}, **{n: n for n in d.parameters}}
    return OWN.substitute(
        header=_header(d),
        now=_part(d, first, "t"),
        before=_part(d, first, "t - 1"),
        once=f"{_update(d, first)}({', '.join(values[n] for n in _asked(d, d.update[first]))})",
        whole="STATE" if d.coupled else first,
        id=_quoted(f"{d.name}/one-token"),
        where=_quoted(d.where),
    )


def _header(d: Description) -> str:
    """Names for the state and the inputs."""
    names = list(d.state)
    inputs = f"{_tuple([*d.inputs, *d.parameters])} = DECLARATION.inputs.values()"
    if not d.coupled:
        return f"{names[0] if len(names) == 1 else f'({_tuple(names)})'}, t = DECLARATION.state, DECLARATION.t\n{inputs}"
    sizes = ", ".join(shape.split("*")[1 if _beside(d) else 0] for shape in _matrices(d))
    parts = f"PARTS = [place([{sizes}], i) for i in range({len(names)})]  # {', '.join(names)} are kept as one matrix"
    return f"STATE, t = DECLARATION.state, DECLARATION.t\n{inputs}\n{parts}"


def _part(d: Description, state: str, at: str) -> str:
    """A state at a time; of states that use each other a part of the one matrix that they are kept in."""
    if not d.coupled:
        return f"{state}[{at}]"
    part = f"PARTS[{list(d.state).index(state)}]"
    return f"STATE[{at}] * {part}" if _beside(d) else f"{part}.T * STATE[{at}]"


def _matrices(d: Description) -> list[str]:
    return [shape if "*" in shape else f"{shape}*1" for shape in d.state.values()]


def _beside(d: Description) -> bool:
    """Whether coupled states stand side by side: they are equally high."""
    return len({shape.split("*")[0] for shape in _matrices(d)}) == 1


def _asked(d: Description, formula: str) -> tuple[str, ...]:
    """The names that a formula uses, in the order of a function's parameters."""
    known = (*d.state, *(f"{n}_before" for n in d.state), *d.inputs, *d.parameters)
    return tuple(n for n in known if n in uses(formula))


def _function(name: str, d: Description, formula: str) -> str:
    parameters = ", ".join(f"{n}: Term" for n in _asked(d, formula))
    return f"def {name}({parameters}) -> Term:\n    return {formula}"


def _update(d: Description, state: str) -> str:
    return "update" if len(d.state) == 1 else f"update_{state}"


def _imports(d: Description) -> str:
    used = set().union(*map(uses, (*d.update.values(), d.read)))
    terms = sorted({"Term", "le", *(("indices",) if d.sizes else ()), *(used & TERMS)}, key=lambda n: (n.islower(), n))
    lines = {
        "claim": "Claim, Source, variant",
        "kernel.formulas": "Equation, Statement",
        "kernel.scripts": "Direct, Unfold",
        "kernel.terms": ", ".join(terms),
        "layer": "derive, layer",
        "layer.functions": ", ".join(sorted(used & functions())),
        "layer.linear": "place" if d.coupled else "",
    }
    return "\n".join(f"from isoform.derivations.{module} import {names}" for module, names in lines.items() if names)


def _table(sizes: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_quoted(n)}: {_size(shape)}" for n, shape in sizes.items()) + "}"


def _tuple(names: Sequence[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def _size(shape: str) -> str:
    return f"({', '.join(shape.split('*'))})" if "*" in shape else shape


def _in_docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'").replace("\n", " ")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
