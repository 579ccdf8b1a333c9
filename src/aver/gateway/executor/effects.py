"""All effects that an executor can cause, by intent.

`CallTool` and `ReadResource` join them where servers are known (`aver.gateway.executor.tool_effects`). The libraries
for mail and HTTP take long to load, so each effect loads its module when it is first caused.
"""

from __future__ import annotations

from aver.gateway.effect_settings import EffectSettings
from aver.gateway.executor.executor import ActEffect, EffectDone, EffectOrder
from aver.gateway.executor.workspace_effects import WorkspaceEffects


def build_effects(workspace: str, settings: EffectSettings) -> dict[str, ActEffect]:
    """Return the effects in a workspace, by the settings."""

    def send_message(order: EffectOrder) -> EffectDone:
        from aver.gateway.executor.mail_effect import MailEffect

        return MailEffect(settings.mail)(order)

    def fetch(order: EffectOrder) -> EffectDone:
        from aver.gateway.executor.web_effects import WebEffects

        return WebEffects(settings.private_hosts).fetch(order)

    def post(order: EffectOrder) -> EffectDone:
        from aver.gateway.executor.web_effects import WebEffects

        return WebEffects(settings.private_hosts).post(order)

    def run(order: EffectOrder) -> EffectDone:
        from aver.gateway.executor.command_effect import CommandEffect

        return CommandEffect(workspace, settings.commands)(order)

    return {
        **WorkspaceEffects(workspace).by_intent,
        "SendMessage": send_message,
        "FetchResource": fetch,
        "PostWebhook": post,
        "RunCommand": run,
    }
