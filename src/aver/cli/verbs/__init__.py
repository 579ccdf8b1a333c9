"""The verbs of the `aver` command."""
