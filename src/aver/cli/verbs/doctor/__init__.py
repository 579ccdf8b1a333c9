"""`aver doctor`."""
