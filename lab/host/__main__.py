"""``python -m lab.host``."""

import sys

from lab.host.programs.main import main

if __name__ == "__main__":
    sys.exit(main())
