"""The API and its description agree: Schemathesis sends what the description allows, and what it forbids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.modes import GenerationMode
from schemathesis.specs.openapi import checks

from aver import Ledger
from aver.explorer import guard
from support.approvals import enrolled, opened, somebody
from support.explorer_servers import ServedExplorer, serve

pytestmark = pytest.mark.more

# Not `negative_data_rejection`: it counts a header that this test replaces, and parameters that are not sent.
CHECKS = [
    not_a_server_error,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
    checks.unsupported_method,
]


@pytest.fixture
def served(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedExplorer]:
    monkeypatch.setattr(guard, "KNOWN_RATE", 1e6)
    monkeypatch.setattr(guard, "UNKNOWN_RATE", 1e6)
    enrolled(filled, somebody("ada"))
    opened(filled)
    with serve(filled) as running:
        yield running


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_answers_are_those_of_the_description(served: ServedExplorer, mode: GenerationMode) -> None:
    description = served.get("openapi.json")
    schema = schemathesis.openapi.from_dict(description)
    schema.config.update(base_url=f"http://localhost:{served.port}/api/v1")
    # The live stream does not end: `test_live` has it.
    operations = [found.ok() for found in schema.get_all_operations() if found.ok().path != "/live"]
    assert len(operations) == len(description["paths"]) - 1

    @settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def send(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS, headers={"Authorization": f"Bearer {served.server.token}"})

    for operation in operations:
        given(case=operation.as_strategy(generation_mode=mode))(send)()
