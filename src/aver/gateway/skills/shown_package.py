"""A package of a skill in lines of text, for the person who is asked to approve its installation.

    package     3 files, 1820 bytes
      SKILL.md  610 bytes
      tools/run.sh  90 bytes
      look: tools/run.sh: install: pip install

Signs come with the file that has them. A package that is not here, or was changed, is told in the same place.
"""

from __future__ import annotations

from aver.errors import AverError
from aver.gateway.skills.indicators import IOC_DOMAIN, find_indicators
from aver.gateway.skills.skill_store import SkillStore
from aver.text import escape_invisible, plural

SHOWN_FILES = 100
"""Most files that are listed. A person reads no longer list; signs are listed all."""


def show_package(store: SkillStore, digest: str, ioc_domains: frozenset[str]) -> list[str]:
    """Return the files of a package, and the signs that its files have, in lines."""
    try:
        package = store.load(digest)
    except AverError as error:
        return [escape_invisible(f"package     {error.message}")]
    size = sum(map(len, package.files.values()))
    lines = [f"package     {plural(len(package.files), 'file')}, {plural(size, 'byte')}"]
    lines += [f"  {name}  {plural(len(data), 'byte')}" for name, data in list(package.files.items())[:SHOWN_FILES]]
    if len(package.files) > SHOWN_FILES:
        lines.append(f"  and {plural(len(package.files) - SHOWN_FILES, 'more file')}")
    for each in find_indicators(package.files, ioc_domains):
        word = "BLOCKED" if each.sort == IOC_DOMAIN else "look"
        lines.append(f"  {word}: {each.path}: {each.sort}: {each.found}")
    return [escape_invisible(line) for line in lines]
