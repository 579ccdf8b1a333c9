"""Live events of a workspace, one line each, for status bars and other watchers.

`.capseal/events.jsonl` is derived from the ledger, in the format of the CapSeal Agent Protocol. It can be deleted and
rebuilt at any time, and Aver makes no decision from it.
"""
