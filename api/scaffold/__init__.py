"""Adding a column: from a description to the three files (`isoform new`)."""
