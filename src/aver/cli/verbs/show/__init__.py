"""`aver show`."""
