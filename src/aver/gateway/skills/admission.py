"""May a package be installed? The gateway asks before any decision, and the executor asks again before the effect."""

from __future__ import annotations

from aver.errors import IntegrityError, NotFound, Refused
from aver.gateway.codes import BAD_REQUEST
from aver.gateway.skills.indicators import IOC_DOMAIN, find_indicators
from aver.gateway.skills.package import SkillPackage
from aver.gateway.skills.skill_store import SkillStore


def admit_package(store: SkillStore, digest: str, ioc_domains: frozenset[str]) -> SkillPackage:
    """Return the package of a digest. Raises `Refused`: it is not here, was changed, or names a listed host."""
    try:
        package = store.load(digest)
    except NotFound as error:
        raise Refused(BAD_REQUEST, error.message, advice=error.advice) from error
    except IntegrityError as error:
        raise Refused("EFFECT_FAILED", error.message) from error
    found = [each for each in find_indicators(package.files, ioc_domains) if each.sort == IOC_DOMAIN]
    if found:
        first = found[0]
        raise Refused("IOC_BLOCKED", f"{first.path} of the package {digest[:16]} names {first.found}")
    return package
