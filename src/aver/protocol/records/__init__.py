"""Traces in a ledger: reading them back verified, preparing what is sealed, and the files beside them."""
