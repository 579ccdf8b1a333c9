"""Proofs about runs: the trace, its proof, and the inclusion of one action."""
