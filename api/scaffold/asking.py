"""The questions of `isoform new` on a terminal. An answer that cannot be is asked for again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import click

from isoform.scaffold.description import TERMS, ScaffoldError, functions, read_logs, read_sizes
from isoform.scaffold.fitting import check_fits

ANSWER = "the answer"
ABOUT = "Formulas are Python over the names that you give: * multiplies numbers and matrices, .T transposes; there are {}."
QUESTIONS = {
    "inputs": "Inputs of a token, with their sizes (q:d_k k:d_k v:d_v beta:1)",
    "parameters": "Parameters, the same for all tokens (W:d_v*d_k; empty: none)",
    "state": "State, with its size (H:d_v*d_k)",
    "update": "Update of the state {} (H - beta * (H * k - v) * k.T)",
    "read": "What is read of the state (H * q)",
    "domains": "Where {0} lies (real; real, 0 <= {0} <= 1)",
    "logs": "Decays that forms are given by their logarithm, as arguments of other names (a=g; empty: none)",
    "source": "Source: authors, title, arXiv number or journal",
    "where": "Equation or section of it",
}


def ask() -> dict[str, Any]:
    """Return what the options of the command would be."""
    click.echo(ABOUT.format(", ".join(sorted(TERMS | functions()))), err=True)
    groups: dict[str, dict[str, str]] = {}
    given: dict[str, Any] = {}
    for key in ("inputs", "parameters", "state"):
        known = {n: size for group in groups.values() for n, size in group.items()}
        check = partial(_check_sizes, known, key != "parameters")
        given[key] = _answer(QUESTIONS[key], check, **({} if key != "parameters" else {"default": "", "show_default": False}))
        groups[key] = read_sizes(given[key], ANSWER, known)
    fixed, states = {**groups["inputs"], **groups["parameters"]}, groups["state"]
    known = {**fixed, **states}
    updates = {n: _answer(QUESTIONS["update"].format(n), partial(check_fits, ANSWER, known, own)) for n, own in states.items()}
    before = {f"{n}_before": size for n, size in states.items()}
    given["read"] = _answer(QUESTIONS["read"], partial(check_fits, ANSWER, {**known, **before}, ""))
    given["domains"] = [f"{n}: {_answer(QUESTIONS['domains'].format(n), partial(_check_domain, n, fixed), default='real')}" for n in fixed]
    logs = _answer(QUESTIONS["logs"], partial(_check_logs, groups["inputs"], known), default="", show_default=False)
    return {
        **given,
        "update": [f"{n} = {u}" for n, u in updates.items()] if len(updates) > 1 else list(updates.values()),
        "logs": logs.replace(",", " ").split(),
        **{key: _answer(QUESTIONS[key], _check_text) for key in ("source", "where")},
    }


def _answer(question: str, check: Callable[[str], object], **more: Any) -> str:
    def read(words: str) -> str:
        try:
            check(words.strip())
        except ScaffoldError as error:
            raise click.UsageError(str(error)) from None
        return words.strip()

    return str(click.prompt(question, err=True, value_proc=read, **more))


def _check_sizes(known: dict[str, str], needed: bool, words: str) -> None:
    if not read_sizes(words, ANSWER, known) and needed:
        raise ScaffoldError("a name and its size are needed, as k:d_k, beta:1 or H:d_v*d_k")


def _check_domain(name: str, names: dict[str, str], words: str) -> None:
    from isoform.derivations.layer.call import domain

    if words.partition(",")[0].strip() not in ("real", "complex"):
        raise ScaffoldError(f"a domain starts with real or complex, as in 'real, 0 <= {name} <= 1'")
    try:
        times = domain(words, ANSWER).times
    except ValueError as error:
        raise ScaffoldError(str(error).replace(" is ", " says ", 1)) from None
    if times and times not in names:
        raise ScaffoldError(f"{ANSWER} speaks of {times}, which is no input or parameter; there are {', '.join(names)}")


def _check_logs(inputs: dict[str, str], known: dict[str, str], words: str) -> None:
    read_logs(tuple(words.replace(",", " ").split()), inputs, known, ANSWER)


def _check_text(words: str) -> None:
    if not words:
        raise ScaffoldError("claims and forms name their source, so this cannot be empty")
