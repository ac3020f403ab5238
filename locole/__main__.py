"""``python -m locole``: the command line."""

import sys

from locole.cli import main

if __name__ == "__main__":
    sys.exit(main())
