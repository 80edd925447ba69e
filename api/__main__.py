"""`python -m isoform` is the `isoform` command."""

import sys

from isoform.cli import main

if __name__ == "__main__":
    sys.exit(main())
