"""``python -m mpc_lab.cli``."""

import sys

from mpc_lab.cli import main

sys.exit(main())
