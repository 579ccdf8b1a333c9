"""The executor: checks the proof of an act, causes its effect once, and seals the outcome."""
