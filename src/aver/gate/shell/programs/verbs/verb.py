"""The type of a verb: a function that judges one argument of a program."""

from __future__ import annotations

from collections.abc import Callable

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word

Verb = Callable[[Invocation, Word], None]
