"""`python -m aver` is the `aver` command."""

import sys

from aver.cli.main import main

sys.exit(main())
