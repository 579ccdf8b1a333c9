"""The effect of `CommitSkillInstall`: the files of a package that came in take the place of a skill.

The package is read again from its directory, and must have the digest that the decision was about. It is looked at
again, too: the list of hosts may have grown since the PREVIEW. The answer has a workload token, by which the skill acts
under its own name. The record has no token: whoever reads the record could use it.
"""

from __future__ import annotations

from collections.abc import Callable

from aver.errors import AverError, Refused
from aver.gateway.executor.executor import EFFECT_FAILED, EffectDone, EffectOrder
from aver.gateway.skills.admission import admit_package
from aver.gateway.skills.package import describe_package
from aver.gateway.skills.skill_store import SkillStore


class SkillEffect:
    """Installs skills. `issue` returns a token for a digest and a session."""

    def __init__(self, store: SkillStore, ioc_domains: frozenset[str], issue: Callable[[str, str], str]) -> None:
        self._store = store
        self._ioc_domains = ioc_domains
        self._issue = issue

    def __call__(self, order: EffectOrder) -> EffectDone:
        skill_id, digest = order.inputs["skill_id"], order.inputs["skill_digest"]
        package = admit_package(self._store, digest, self._ioc_domains)
        try:
            place = self._store.install(skill_id, package)
        except (AverError, OSError) as error:
            raise Refused(EFFECT_FAILED, f"the skill {skill_id} could not be written: {error}") from error
        told = {"skill_id": skill_id, **describe_package(package), "place": str(place)}
        token = self._issue(digest, order.request.session)
        return EffectDone(f"installed the skill {skill_id}", {**told, "workload_token": token}, recorded=told)
