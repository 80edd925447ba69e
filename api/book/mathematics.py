"""From the LaTeX of our printer to MathML, at build time."""

from __future__ import annotations

from functools import cache
from html import escape

from markupsafe import Markup
from math_core import LatexError, LatexToMathML


def mathml(latex: str, text: str = "", *, display: bool = True) -> Markup:
    """Return a formula as MathML; one that the converter does not know is shown as its text, which no reader has to decode."""
    try:
        return Markup(convert(latex, display=display))
    except LatexError:
        return Markup(f'<code class="unset">{escape(text or latex)}</code>')


@cache
def convert(latex: str, *, display: bool = True) -> str:
    """Return LaTeX as a MathML element. Raises LatexError for what the converter does not know."""
    return _converter().convert_with_local_state(latex, displaystyle=display)


@cache
def _converter() -> LatexToMathML:
    return LatexToMathML(fancy_error=False)
