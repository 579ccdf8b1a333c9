"""The effects of an action: their names, and the paths and hosts it touches.

This file imports nothing: `gate.shell` uses `findings`, and `effects` uses `gate.shell`.
"""
