"""A passkey in a real Chromium: made on the page of a running server, endorsed at a terminal, and used to answer.

The authenticator is Chromium's virtual one. The browser itself makes `client_data` and `authenticator_data`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aver import Ledger
from aver.gate.approvals import (
    ApprovalRequest,
    Person,
    consume,
    endorse_passkey,
    enrol_approver,
    load_request_state,
    load_roster,
    open_request,
    read_enrolment_code,
)
from aver.gate.approvals.request_records import load_request
from support.approvals import action, asking, opened, somebody
from support.explorer_servers import ServedExplorer, serve
from support.node import run_page_sources

pytestmark = [pytest.mark.browser, pytest.mark.long]

ENROL = """async ([identity, ledger, tenant]) => {
  const enrolment = await averPasskey.signEnrolment(identity, { ledger, tenant });
  const { enrolmentCode, enrolledFingerprint, endorseCommand } = averPasskey;
  return [enrolmentCode, enrolledFingerprint, endorseCommand].map((read) => read(enrolment));
}"""

ANSWER = """async ([path, token, canonical, ledger, tenant, word, identity, comment, change]) => {
  const request = averPasskey.readOpenRequest(canonical, ledger, tenant);
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const blob = async (digest) => {
    const answer = await fetch(`/api/v1/blobs/${digest}`, { headers });
    return new Uint8Array(await answer.arrayBuffer());
  };
  const shown = await averPasskey.shownText(request, blob, { comment });
  const statement = await averPasskey.signVote(request, word, identity, shown);
  const body = averPasskey.voteBody(statement, shown + change, comment);
  const answer = await fetch(`/api/v1/${path}`, { method: "POST", headers, body });
  return [answer.status, await answer.json(), shown];
}"""


@pytest.fixture(scope="module")
def script() -> str:
    """The page's helper for passkeys, as one script."""
    return run_page_sources("tests/passkey_script.mjs")


@pytest.fixture
def ada(ledger: Ledger) -> Person:
    person = somebody("ada")
    enrol_approver(ledger, person)
    ledger.keys.trust(person.public)
    return person


@pytest.fixture
def served(ledger: Ledger, ada: Person) -> Iterator[ServedExplorer]:
    with serve(ledger) as running:
        yield running


class Desk:
    """A page of the server with an authenticator."""

    def __init__(self, page: Any, served: ServedExplorer, ledger: Ledger) -> None:
        self.page = page
        self._served = served
        self._ledger = ledger
        self._session = page.context.new_cdp_session(page)
        self._session.send("WebAuthn.enable")
        self.authenticator = self.add_authenticator()

    def add_authenticator(self, *, verifies: bool = True) -> str:
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": verifies,
            "automaticPresenceSimulation": True,
        }
        made = self._session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        return str(made["authenticatorId"])

    def fail_verification(self) -> None:
        """From now on, the authenticator does not recognise the person."""
        given = {"authenticatorId": self.authenticator, "isUserVerified": False}
        self._session.send("WebAuthn.setUserVerified", given)

    def enrol(self, name: str) -> tuple[str, str, str]:
        """Make a passkey. Returns the code, the fingerprint and the command that the page shows."""
        code, fingerprint, command = self.page.evaluate(ENROL, [name, self._ledger.id, self._ledger.tenant])
        return code, fingerprint, command

    def answer(
        self, request: ApprovalRequest, word: str, identity: str, *, comment: str = "", change: str = ""
    ) -> tuple[int, Any, str]:
        canonical = next(self._ledger.read(request.chain, request.sequence, request.sequence + 1)).canonical.decode()
        home = (self._ledger.id, self._ledger.tenant)
        path = f"approvals/{request.id}"
        given = [path, self._served.server.token, canonical, *home, word, identity, comment, change]
        status, document, shown = self.page.evaluate(ANSWER, given)
        return status, document, shown


@pytest.fixture
def desk(chromium: Any, script: str, served: ServedExplorer, ledger: Ledger) -> Iterator[Desk]:
    context = chromium.new_context()
    context.add_init_script(script)
    page = context.new_page()
    page.goto(f"http://localhost:{served.port}/")
    yield Desk(page, served, ledger)
    context.close()


def enrol(desk: Desk, ledger: Ledger, ada: Person, name: str = "person:ada-phone") -> str:
    code, fingerprint, command = desk.enrol(name)
    statement = read_enrolment_code(code)
    assert command.startswith(f"aver approvals endorse {code} --by ")
    endorse_passkey(ledger, statement, ada)
    approver = load_roster(ledger).approvers[name]
    assert (approver.fingerprint, approver.is_independent) == (fingerprint, True)
    return name


@pytest.mark.parametrize(("word", "state"), [("approve", "approved"), ("deny", "denied")])
def test_passkey_is_enrolled_and_answers(desk: Desk, ledger: Ledger, ada: Person, word: str, state: str) -> None:
    name = enrol(desk, ledger, ada)
    # Several, because an authenticator gives a high S in half of all cases, and the page lowers it.
    for number in range(4):
        request = opened(ledger, f"rm -rf build-{number}", f"gate-{number}")
        status, document, shown = desk.answer(request, word, name, comment="as agreed\u202e")
        assert (status, document["state"]) == (200, state), document
        for line in (f"command: rm -rf build-{number}", f"digest {request.digest}", "| as agreed<U+202E>"):
            assert line in shown
        vote = load_request_state(ledger, load_request(ledger, request.id))
        assert vote.state == state
        if word == "approve":
            assert vote.escalation is None
            consume(ledger, request, request.digest)
    assert ledger.verify().check("approvals").status == "passed"


def test_text_that_the_person_did_not_see_is_refused(desk: Desk, ledger: Ledger, ada: Person) -> None:
    name = enrol(desk, ledger, ada)
    request = opened(ledger)
    status, document, _ = desk.answer(request, "approve", name, change="and all else\n")
    assert (status, document["code"]) == (409, "STATEMENT_MISMATCH")
    assert load_request_state(ledger, request).state == "pending"


def test_authenticator_that_does_not_know_the_person_signs_nothing(desk: Desk, ledger: Ledger, ada: Person) -> None:
    name = enrol(desk, ledger, ada)
    request = opened(ledger)
    desk.fail_verification()
    with pytest.raises(Exception, match="NotAllowedError"):
        desk.answer(request, "approve", name)
    assert load_request_state(ledger, request).state == "pending"


def test_large_parts_are_shown_whole(desk: Desk, ledger: Ledger, ada: Person) -> None:
    name = enrol(desk, ledger, ada)
    about = action(diff="+line\n" * 9000, arguments={"command": "x" * 40_000})
    request = open_request(ledger, about, asking(about))
    status, document, shown = desk.answer(request, "approve", name)
    assert (status, document["state"]) == (200, "approved"), document
    assert shown.count("| +line\n") == 9000
    assert shown.replace("\n  : ", "").count("x" * 40_000) == 1


def test_passkey_endorses_another_on_the_page(desk: Desk, ledger: Ledger, ada: Person, served: ServedExplorer) -> None:
    name = enrol(desk, ledger, ada)
    request = opened(ledger)
    canonical = next(ledger.read(request.chain, 0, 1)).canonical.decode()
    endorse = """async ([token, canonical, ledger, tenant, name]) => {
      const known = averPasskey.readOpenRequest(canonical, ledger, tenant).passkeys.get(name);
      const made = await averPasskey.signEnrolment("person:ada-laptop", { ledger, tenant });
      const body = averPasskey.enrolmentBody(await averPasskey.endorseEnrolment(made, known));
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
      const answer = await fetch("/api/v1/approvers", { method: "POST", headers, body });
      return [answer.status, await answer.json()];
    }"""
    status, document = desk.page.evaluate(endorse, [served.server.token, canonical, ledger.id, ledger.tenant, name])
    assert (status, document["identity"]) == (200, "person:ada-laptop"), document
    assert not load_roster(ledger).approvers["person:ada-laptop"].is_independent


def test_person_endorses_another_passkey_on_the_page(
    chromium: Any, served: ServedExplorer, ledger: Ledger, ada: Person
) -> None:
    """By the page's own controls: a passkey that is on the roster endorses the next one. Nobody needs a terminal."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(served.server.link)
    Desk(page, served, ledger)
    page.evaluate("location.hash = '#/approvals'")
    for name in ("person:ada-phone", "person:ada-laptop"):
        page.get_by_label("Person").fill(name)
        page.get_by_role("button", name="Make a passkey").click()
        command = page.get_by_text("aver approvals endorse").first
        command.wait_for(timeout=60_000)
        endorse = page.get_by_role("button", name="Endorse with a passkey")
        if name == "person:ada-phone":
            assert endorse.count() == 0  # The roster has no passkey yet.
            code = command.inner_text().split("endorse ")[1].split()[0]
            endorse_passkey(ledger, read_enrolment_code(code), ada)
        else:
            endorse.click()
            page.get_by_text("person:ada-laptop is on the list of approvers").wait_for(timeout=60_000)
    approver = load_roster(ledger).approvers["person:ada-laptop"]
    assert (approver.custody, approver.is_independent) == ("passkey", False)
    assert ledger.verify().check("approvals").status == "passed"
    context.close()


def test_page_from_an_address_has_no_passkeys(desk: Desk, served: ServedExplorer) -> None:
    assert desk.page.evaluate("averPasskey.passkeyObstacle()") == ""
    desk.page.goto("about:blank")
    assert desk.page.evaluate("averPasskey.passkeyObstacle()") != ""


@pytest.mark.parametrize(("button", "state"), [("Approve", "approved"), ("Deny", "denied")])
def test_person_uses_the_page(
    chromium: Any, served: ServedExplorer, ledger: Ledger, ada: Person, button: str, state: str
) -> None:
    """By the page's own controls: make a passkey, let ada endorse it, read the request, answer it."""
    context = chromium.new_context()
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(served.server.link)
    Desk(page, served, ledger)
    page.evaluate("location.hash = '#/approvals'")
    page.get_by_label("Person").fill("person:ada-phone")
    page.get_by_role("button", name="Make a passkey").click()
    command = page.get_by_text("aver approvals endorse").first
    command.wait_for(timeout=60_000)
    code = command.inner_text().split("endorse ")[1].split()[0]
    endorse_passkey(ledger, read_enrolment_code(code), ada)
    request = opened(ledger)
    page.evaluate("id => { location.hash = `#/approvals/${id}`; }", request.id)
    page.locator("pre.shown").get_by_text(f"digest {request.digest}").wait_for(timeout=60_000)
    assert "command: rm -rf build" in page.locator("pre.shown").inner_text()
    page.get_by_role("button", name=f"{button} with a passkey").click()
    page.locator(".sentence .word.good, .sentence .word.failure").wait_for(timeout=60_000)
    assert load_request_state(ledger, request).state == state
    assert ledger.verify().check("approvals").status == "passed"
    assert problems == []
    context.close()
