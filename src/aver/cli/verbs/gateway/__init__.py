"""`aver gateway`: one module for each of its subcommands."""
