"""How much a cross-check or a check tries."""

LEVELS = ("quick", "default", "deep")
"""The levels by name, the least first; `isoform.properties.crosscheck` says what each of them tries."""
