"""`aver verify`."""
