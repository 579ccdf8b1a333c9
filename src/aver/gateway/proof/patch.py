"""Patches: the change of a request that the policy wants before it goes out.

    0  NOOP                             nothing changes
    1  REDACT                           every secret in the text becomes `[masked:RULE]` (`aver.capsule.masking`)
    2  CLAMP_LEN n                      the text is cut to its first n characters
    3  REWRITE_DOMAIN_TO_PROXY host     the request goes to this host instead

A rule of the policy asks for one by its annotation, and its parameter comes from there alone:

    @patch("CLAMP_LEN 256")

    >>> apply_patch(parse_patch("CLAMP_LEN 2"), "SendMessage", {"channel": "email", "recipient": "bob@example.com",
    ...     "domain": "example.com", "text": "hello"}).inputs["text"]
    'he'

The executor applies the patch to the bound inputs, after it has checked their hash. So the evidence is about the inputs
that the agent asked for, and the outcome has the digest of what went out. `PATCHED_INPUTS` says which inputs each patch
changes. A patch for an intent that is not in its table refuses the request with `POLICY_DENY`: the policy wants a
change that cannot be made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from aver.capsule.canonical import ascii_json
from aver.capsule.masking.mask import mask
from aver.errors import BadInput, Refused
from aver.fast_dataclass import dataclass
from aver.gate.policy.annotations import parse_patch as parse_rule_patch
from aver.gateway.codes import POLICY_DENY
from aver.gateway.intents import INTENTS
from aver.log import debug

PATCH_NAMES = ("NOOP", "REDACT", "CLAMP_LEN", "REWRITE_DOMAIN_TO_PROXY")
"""The name of each patch; its number is its place here."""

NOOP_ID, REDACT_ID, CLAMP_ID, REWRITE_ID = range(4)

_TEXTS = {
    "SendMessage": ("text",),
    "PostWebhook": ("body", "text"),
    "WriteWorkspaceFile": ("content",),
    "FinalizeOutput": ("text",),
}
"""The texts that leave the machine or stay in the workspace. A fetch binds a constant text, which goes nowhere."""

PATCHED_INPUTS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    NOOP_ID: dict.fromkeys(INTENTS, ()),
    # `arguments` is an object: the masking of whole objects also knows the names of values.
    REDACT_ID: {**_TEXTS, "CallTool": ("arguments",)},
    CLAMP_ID: _TEXTS,
    REWRITE_ID: {"FetchResource": ("domain",), "PostWebhook": ("domain",)},
}
"""For each patch, the intents that it applies to, and the inputs that it changes.

No patch changes a path, a command, a recipient or a digest: the result would be another act than the one that was
shown. So for these intents only NOOP applies: ReadWorkspaceFile, DeleteWorkspaceFile, RunCommand, ReadResource,
CommitSkillInstall, Declassify."""


@dataclass(frozen=True, slots=True)
class SanitizePatch:
    """A patch with its parameter: `max_chars` of CLAMP_LEN, `host` of REWRITE_DOMAIN_TO_PROXY."""

    id: int = NOOP_ID
    max_chars: int | None = None
    host: str | None = None

    @property
    def name(self) -> str:
        return PATCH_NAMES[self.id]

    @property
    def params(self) -> dict[str, Any]:
        given = {"max_chars": self.max_chars, "host": self.host}
        return {name: value for name, value in given.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """The patch as envelopes and records have it."""
        return {"patch_id": self.id, "patch_name": self.name, "params": self.params}

    @property
    def annotation(self) -> str:
        """The text that `parse_patch` reads."""
        return " ".join([self.name, *map(str, self.params.values())])

    @classmethod
    def from_dict(cls, document: Any, where: str = "patch") -> SanitizePatch:
        """Read what `to_dict` wrote. Raises `BadInput`."""
        if type(document) is dict and type(document.get("params")) is dict and type(document.get("patch_name")) is str:
            patch = parse_patch(" ".join([document["patch_name"], *map(str, document["params"].values())]))
            # In bytes: Python's `==` takes `True` and `1.0` for 1.
            if ascii_json(patch.to_dict()) == ascii_json(document):
                return patch
        raise BadInput(f"{where} must be {{patch_id, patch_name, params}} of a known patch")


NOOP = SanitizePatch()


@dataclass(frozen=True, slots=True)
class PatchedInputs:
    """The inputs that go out, and the digest that the outcome's record has."""

    inputs: dict[str, Any]
    sha256: str
    """SHA-256 of ascii_json of the inputs."""
    changed: tuple[str, ...] = ()
    """The names of the inputs that differ from the bound ones."""


def parse_patch(text: str) -> SanitizePatch:
    """Read the text of a rule's `@patch` annotation, or `NOOP`. Raises `BadInput`."""
    if text == PATCH_NAMES[NOOP_ID]:
        return NOOP
    found = parse_rule_patch(text)
    return SanitizePatch(PATCH_NAMES.index(found.word), max_chars=found.length or None, host=found.host or None)


def is_applicable(patch: SanitizePatch, intent_id: str) -> bool:
    """Whether the patch can be applied to requests of this intent."""
    return intent_id in PATCHED_INPUTS[patch.id]


def apply_patch(patch: SanitizePatch, intent_id: str, inputs: Mapping[str, Any]) -> PatchedInputs:
    """Return the inputs that go out. `Refused` with `POLICY_DENY` if the patch does not apply to the intent."""
    if not is_applicable(patch, intent_id):
        debug("gateway", "refused as %s: %s does not apply to %s", POLICY_DENY, patch.name, intent_id)
        raise Refused(
            POLICY_DENY,
            f"the policy wants {patch.name}, which cannot be applied to {intent_id}",
            advice="correct the @patch annotation of the rule",
        )
    patched = dict(inputs)
    for name in PATCHED_INPUTS[patch.id][intent_id]:
        if patch.id == REDACT_ID:
            patched[name] = mask(inputs[name]).value
        elif patch.id == CLAMP_ID:
            patched[name] = inputs[name][: patch.max_chars]
        elif patch.id == REWRITE_ID:
            patched[name] = patch.host
    changed = tuple(name for name in patched if patched[name] != inputs[name])
    return PatchedInputs(patched, hashlib.sha256(ascii_json(patched)).hexdigest(), changed)
