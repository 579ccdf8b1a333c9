"""Live events: what happens in a workspace, one line each, for status bars and whoever watches.

`.capseal/events.jsonl` is a projection of the ledger, in the form that the CapSeal Agent Protocol gives: it can be
thrown away and made again, and nothing is decided by it.
"""
