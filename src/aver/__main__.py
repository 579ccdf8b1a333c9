"""`python -m aver` is the `aver` command."""

import sys

from aver.cli import main

sys.exit(main())
