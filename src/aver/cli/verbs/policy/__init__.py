"""`aver policy`."""
