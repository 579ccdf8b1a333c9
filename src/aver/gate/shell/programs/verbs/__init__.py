"""What becomes of an argument: the verbs that tables use."""

from __future__ import annotations

from collections.abc import Mapping

from aver.gate.shell.programs.verbs.building import BUILDING
from aver.gate.shell.programs.verbs.general import GENERAL, Verb
from aver.gate.shell.programs.verbs.repository import REPOSITORY
from aver.gate.shell.programs.verbs.web import WEB

__all__ = ["VERBS", "Verb"]

VERBS: Mapping[str, Verb] = {**GENERAL, **WEB, **REPOSITORY, **BUILDING}
