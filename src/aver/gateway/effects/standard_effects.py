"""All effects that an executor can cause, by intent.

`CallTool` and `ReadResource` join them where servers are known (`aver.gateway.effects.tool_effects`). The libraries
for mail and HTTP take long to load, so each effect loads its module when it is first caused.
"""

from __future__ import annotations

import time

from aver.gateway.effect_settings import EffectSettings
from aver.gateway.effects.declassify_effect import DeclassifyEffect
from aver.gateway.effects.workspace_effects import WorkspaceEffects
from aver.gateway.executor.executor import ActEffect, EffectDone, EffectOrder
from aver.gateway.handles import DECLASSIFY, HandleStore
from aver.ledger import Ledger


def build_effects(
    ledger: Ledger, workspace: str, settings: EffectSettings, handles: HandleStore | None = None
) -> dict[str, ActEffect]:
    """Return the effects in a workspace, by the settings. The ledger's key signs the tokens of installed skills.

    `handles` are those of a gateway in the same process. Without them, nothing can be declassified.
    """

    def send_message(order: EffectOrder) -> EffectDone:
        from aver.gateway.effects.mail_effect import MailEffect

        return MailEffect(settings.mail)(order)

    def fetch(order: EffectOrder) -> EffectDone:
        from aver.gateway.effects.web_effects import WebEffects

        return WebEffects(settings.private_hosts).fetch(order)

    def post(order: EffectOrder) -> EffectDone:
        from aver.gateway.effects.web_effects import WebEffects

        return WebEffects(settings.private_hosts).post(order)

    def run(order: EffectOrder) -> EffectDone:
        from aver.gateway.effects.command_effect import CommandEffect

        return CommandEffect(workspace, settings.commands)(order)

    def install_skill(order: EffectOrder) -> EffectDone:
        from aver.gateway.effects.skill_effect import SkillEffect
        from aver.gateway.skills.skill_store import SkillStore
        from aver.gateway.skills.workload_token import issue_workload_token

        def issue(digest: str, session: str) -> str:
            signer = ledger.keys.signer()
            return issue_workload_token(signer, skill_digest=digest, session=session, now=time.time())

        store = SkillStore(ledger.config.home, settings.skills)
        return SkillEffect(store, settings.skills.ioc_domains, issue)(order)

    return {
        **WorkspaceEffects(workspace, handles).by_intent,
        **({} if handles is None else {DECLASSIFY: DeclassifyEffect(ledger, handles)}),
        "SendMessage": send_message,
        "FetchResource": fetch,
        "PostWebhook": post,
        "RunCommand": run,
        "CommitSkillInstall": install_skill,
    }
