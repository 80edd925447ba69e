"""What can go wrong when a term is evaluated."""


class EvaluationError(Exception):
    """A term has no value that this engine can give."""


class UnsupportedTerm(EvaluationError):
    """The number system, or this engine, cannot evaluate the node at all."""


class Undefined(EvaluationError):
    """The term is not defined at these sizes: a row that does not exist, a recursion before its start."""


class Singular(EvaluationError):
    """The drawn values lie outside an operation's domain: a singular inverse, the logarithm of 0."""
