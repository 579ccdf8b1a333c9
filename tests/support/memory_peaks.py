"""How much memory a process of a test needed at most, by its own account.

`ru_maxrss` begins with what the process had that started it, so that much of what is to be seen would hide below that.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["KNOWN", "PEAK"]

KNOWN = Path("/proc/self/status").exists()

PEAK = """
def peak_kb():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
"""
"""To be put before the code of a process: it has `peak_kb()` then."""
