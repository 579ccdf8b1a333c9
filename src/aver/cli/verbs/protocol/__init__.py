"""`aver protocol`: traces of several agents."""
