"""Agents' hooks are tested on a machine whose people have set nothing up."""

from support.bare_machine import bare_machine

__all__ = ["bare_machine"]
