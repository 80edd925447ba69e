"""Citing: BibTeX of a claim, of the release, and of the papers behind it."""
