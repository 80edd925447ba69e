"""Terms and formulas as text and as LaTeX."""


def text(x):
    return f"{type(x).__name__}({', '.join(str(a) for a in x.args)})"


def latex(x):
    return text(x)
