"""Conformance of anybody's kernel: `isoform check`, `isoform replay` and `isoform.check`. Nothing heavy is imported here."""
