"""The entry point of `python -m cordwood.cli`."""

import sys

from cordwood.cli import main

sys.exit(main())
