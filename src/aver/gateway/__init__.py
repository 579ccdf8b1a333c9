"""The gateway: an agent asks for an act, two policy servers decide about it, and one executor carries it out."""
