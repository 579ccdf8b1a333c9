"""Files on this machine: safe opening, atomic replacement, locks, and the user's directories."""
