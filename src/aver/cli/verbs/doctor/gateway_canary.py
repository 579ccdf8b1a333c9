"""The gateway's part of `aver doctor`: a canary through PREVIEW, and the health of parts that run apart.

The canary asks whether a file of an empty directory may be read. It goes to both policy servers like every act, so it
leaves a decision and a PREVIEW in the session `aver-doctor`. Nothing else happens. A home that never used the gateway
gets no canary: it would make the gateway's keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from aver.cli.verbs.doctor.report import DoctorReport
from aver.config import Config

SESSION = "aver-doctor"
CALLER = "aver:doctor"

CANARY_SECONDS = 5.0
"""How long a part may take to answer about its health."""

_NO_DECISION = frozenset({"POLICY_UNAVAILABLE", "EXECUTOR_UNAVAILABLE", "BAD_REQUEST"})


def try_gateway(config: Config) -> Iterator[DoctorReport]:
    """Send the canary, and ask the executor how it is. Raises `AverError` where the gateway cannot be opened."""
    from aver.gateway.parts.entrance import is_apart, open_gateway_of
    from aver.gateway.settings import read_gateway_settings
    from aver.keys import KeyStore
    from aver.ledger import open_ledger

    settings = read_gateway_settings(config)
    if settings.is_insecure:
        words = "EXECUTOR_INSECURE_ALLOW is set: the executor acts without evidence"
        yield DoctorReport("problem", "gateway", words, "unset it")
    if not is_apart(config.home, settings) and KeyStore(config.home).ring().active("policy:0") is None:
        yield DoctorReport("ok", "gateway", "not in use yet")
        return
    with (
        tempfile.TemporaryDirectory(prefix="aver-doctor-") as workspace,
        open_ledger(config.ledger, tenant=config.tenant, home=config.home, create=False) as ledger,
        open_gateway_of(ledger, workspace=workspace, session=SESSION, close=lambda: None) as gateway,
    ):
        document = {
            "intent_id": "CheckReadWorkspaceFile",
            "inputs": {"relpath": "canary.txt"},
            "constraints": {},
            "caller": CALLER,
        }
        answer = gateway.act(document)
        deployment = "apart" if gateway.deployment == "apart" else "in one process"
    if answer["reason_code"] == "CAPSULE_REQUIRED":
        words = "require_capsule is set: only agents in a verified confinement may act, so the canary was refused"
        yield DoctorReport("ok", "gateway", words)
    elif answer["reason_code"] in _NO_DECISION:
        words = f"the canary got no decision: {answer['reason_code']}: {answer['summary']}"
        yield DoctorReport("problem", "gateway", words, "aver gateway status")
    else:
        words = f"parts {deployment}; both policy servers answered a PREVIEW: {answer['reason_code']}"
        yield DoctorReport("ok", "gateway", words)
    if gateway.deployment == "apart":
        yield _ask_executor(config)


def _ask_executor(config: Config) -> DoctorReport:
    from aver.errors import AverError
    from aver.gateway.parts.part_directories import EXECUTOR, GATEWAY, PartDirectories, read_link_token
    from aver.gateway.settings import read_gateway_settings
    from aver.serving.part_client import PartClient

    directories = PartDirectories(config.home)
    try:
        address = directories.find_address(EXECUTOR, read_gateway_settings(config))
        token = read_link_token(directories.of(GATEWAY) / f"{EXECUTOR}.token")
        PartClient(address, token, CANARY_SECONDS, part="the executor").get("/health")
    except AverError as error:
        return DoctorReport("problem", "gateway", error.message, "aver gateway up, or aver gateway executor")
    return DoctorReport("ok", "gateway", f"the executor answers at {address}")
