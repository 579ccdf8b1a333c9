"""Whether this machine can confine, and contracts for programs in a test's directories."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from aver.gate.confinement import find_wrapper
from aver.gateway.mediation.contract import CapsuleContract
from aver.gateway.specs import CONTRACT, read_spec_bytes


def can_confine() -> bool:
    """Whether a wrapper is installed, and this system lets it make namespaces."""
    wrapper = find_wrapper()
    if wrapper is None:
        return False
    probe = [wrapper, "--unshare-all", "--ro-bind", "/", "/", "--", "/bin/true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_wrapper = pytest.mark.skipif(not can_confine(), reason="bubblewrap is not installed, or may not make namespaces")


def quick_contract(**changes: Any) -> CapsuleContract:
    """The contract that comes with Aver, without the probe of the MCP door, which takes seconds."""
    document = json.loads(read_spec_bytes(CONTRACT))
    document["assertions"] = [each for each in document["assertions"] if each["kind"] != "gateway_mcp_act"]
    for name, value in changes.items():
        document[name] = {**document[name], **value} if isinstance(value, dict) else value
    return CapsuleContract.parse(json.dumps(document).encode())
