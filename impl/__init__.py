"""Fast, correct PyTorch versions of every form: one file per architecture, plain functions.

Each file exports ``FORMS``, the callables that take exactly the plain call of their operator, and, where an
operator can be decoded token by token, ``STEPS``; ``CACHED`` are the functions with a cache. Nothing here imports a symbolic engine.
"""
