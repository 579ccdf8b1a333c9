"""`aver demo`."""
