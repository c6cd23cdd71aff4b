"""`python -m leadline` is the command."""

import sys

from leadline.cli import main

sys.exit(main())
