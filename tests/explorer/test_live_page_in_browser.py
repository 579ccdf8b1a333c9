"""The page on a live ledger, in a real Chromium: link, appends, damage, rollbacks, a server that ends, approvals."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.explorer.server import ExplorerServer, listen_locally
from aver.gate.approvals import deny, endorse_passkey, enrol_approver, read_enrolment_code
from aver.ledger.bundle import export_bundle
from support.agents import sample_session as sample
from support.approvals import opened, somebody
from support.browser_pages import AXE, AXE_RULES, go, wait_for_verdict
from support.explorer_servers import ServedExplorer, serve
from support.story_sites import write_failed_audit
from support.tamper import unguarded

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


@contextmanager
def serve_at(ledger: Ledger, port: int) -> Iterator[ExplorerServer]:
    """Serve a ledger at a port, so that a browser takes it for the same origin."""
    with listen_locally(port) as place:
        server = ExplorerServer(ledger, place, read_only=False)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            while thread.is_alive():
                server.stop()
                thread.join(0.1)


def draft(text: str = "one more") -> Capsule:
    return Capsule(
        type="tool", trigger={"source": "test", "request": text}, outcome={"status": "success", "summary": text}
    )


def test_link_pins_the_keys_and_leaves_the_address(page: Any, served: ServedExplorer) -> None:
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()
    assert served.server.token not in page.evaluate("location.href + document.cookie + JSON.stringify(localStorage)")
    assert "came from the server of this ledger" in page.locator(".band").inner_text()
    go(page, "#/keys")
    page.get_by_text("by the link that aver serve printed").wait_for()
    page.reload()  # The token is kept for this tab.
    go(page, "#/")
    page.locator(".band.verified").wait_for()


def test_wrong_key_list_pins_nothing(page: Any, served: ServedExplorer) -> None:
    page.goto(f"http://localhost:{served.port}/#token={served.server.token}&keys={'0' * 64}")
    page.locator(".band.qualified").wait_for()
    page.get_by_text("not the one that its link vouches for").wait_for()
    go(page, "#/keys")
    page.get_by_text("not pinned, not used").first.wait_for()


def test_page_without_a_token_says_how_to_get_in(free_page: Any, served: ServedExplorer) -> None:
    free_page.goto(f"http://localhost:{served.port}/")
    free_page.get_by_text("Open the link that aver serve prints").wait_for()
    free_page.goto(f"http://localhost:{served.port}/#token=wrong&keys=")
    free_page.get_by_role("alert").filter(has_text="open the link that it printed last").wait_for()
    assert free_page.locator("nav.rail a").count() == 2  # Nothing of the ledger is there.


def test_link_in_a_tab_that_has_the_page_goes_on_where_it_was(free_page: Any, served: ServedExplorer) -> None:
    """A browser loads nothing for it: only the part after # changes."""
    free_page.goto(f"http://localhost:{served.port}/#/chain/codex.two")
    free_page.get_by_text("Open the link that aver serve prints").wait_for()
    free_page.goto(served.server.link)
    free_page.locator(".row:not(.loading)").first.wait_for()
    assert free_page.evaluate("location.hash") == "#/chain/codex.two"
    assert served.server.token not in free_page.evaluate("location.href")
    free_page.go_back()  # Nor in the history.
    assert served.server.token not in free_page.evaluate("location.href")


def test_command_leads_to_the_ledger_of_the_server(page: Any, served: ServedExplorer, filled: Ledger) -> None:
    """Not to the one that this machine's settings name."""
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()
    shown = page.locator(".without-page .command code").inner_text()
    assert shown.split() == ["aver", "verify", "--ledger", f"sqlite:///{filled.store.path}"]


def test_each_command_is_about_the_ledger_of_the_server(page: Any, served: ServedExplorer, filled: Ledger) -> None:
    """But for those about keys, clients, or a record that is in another ledger."""
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()
    here = f" --ledger sqlite:///{filled.store.path}"
    for address, expected in (
        ("#/try", f"aver export --html --out DIR{here}"),
        ("#/acts", f"aver gateway act INTENT --inputs '{{}}'{here}"),
        ("#/approvals", f"aver approvals enrol person:NAME{here}"),
        ("#/risk", "aver install claude-code"),
        ("#/ref/capsule%3A%2F%2Felsewhere%2F1", "aver show capsule://elsewhere/1"),
    ):
        go(page, address)
        page.locator("main .command code", has_text=expected.split(" --")[0]).wait_for()
        assert page.locator("main .command code").inner_text() == expected


def test_new_records_appear_and_are_judged(page: Any, served: ServedExplorer, filled: Ledger) -> None:
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()
    before = int(page.locator(".sentence").inner_text().split()[1])
    go(page, "#/chain/codex.two")
    page.locator(".row:not(.loading)").first.wait_for()
    filled.append_many("codex.two", [draft(f"appended {number}") for number in range(3)])
    page.get_by_text("appended 2").wait_for()
    go(page, "#/")
    page.locator(".sentence").filter(has_text=f"{before + 3} records").wait_for()


def test_damage_behind_the_ledger_is_shown_at_its_place(page: Any, served: ServedExplorer, filled: Ledger) -> None:
    record = list(filled.read("codex.two"))[1]
    attacker = unguarded(filled)
    changed = record.canonical.replace(b'"summary":"', b'"summary":"!', 1)
    attacker.execute("UPDATE records SET canonical = ? WHERE hash = ?", (changed, record.hash))
    attacker.close()
    page.goto(served.server.link)
    assert wait_for_verdict(page) == "Failed"
    page.get_by_role("link", name="Go there").click()
    page.locator(".break").wait_for()
    assert "HASH_MISMATCH at chain codex.two, sequence 1" in page.locator(".break").inner_text()
    assert page.locator(".row.broken").count() == 1


def test_ledger_that_was_rolled_back_is_noticed(
    free_page: Any, filled: Ledger, aver_home: Path, tmp_path: Path
) -> None:
    shutil.copytree(aver_home, tmp_path / "earlier")
    filled.append("codex.two", draft())
    with serve(filled) as running:
        port = running.port
        free_page.goto(running.server.link)
        free_page.locator(".band.verified").wait_for()
    with open_ledger(home=tmp_path / "earlier") as earlier, serve_at(earlier, port) as server:
        free_page.goto(server.link)
        free_page.locator(".band.failed").wait_for()
        words = free_page.locator(".band .finding").first.inner_text()
        assert "ROLLBACK" in words
        assert "this browser remembers" in words


def test_server_that_ends_and_comes_back(free_page: Any, filled: Ledger) -> None:
    with serve(filled) as running:
        port = running.port
        free_page.goto(running.server.link)
        free_page.locator(".band.verified").wait_for()
        free_page.locator(".live.on").wait_for()
    free_page.locator(".stale").wait_for()
    assert "Not live since" in free_page.locator(".stale").inner_text()
    go(free_page, "#/chains")
    free_page.locator(".chain-row:not(.heads)").first.wait_for()  # What was read stays.
    with serve_at(filled, port) as server:
        free_page.goto(server.link)
        free_page.locator(".live.on").wait_for()


def test_server_that_was_started_anew_has_another_token(free_page: Any, filled: Ledger) -> None:
    """Such as after an upgrade. The page says so, keeps what it read, and does not ask on and on."""
    with serve(filled) as running:
        port = running.port
        free_page.goto(running.server.link)
        free_page.locator(".band.verified").wait_for()
        free_page.locator(".live.on").wait_for()
    with serve_at(filled, port):
        free_page.locator(".stale").filter(has_text="token").wait_for()
        go(free_page, "#/chains")
        free_page.locator(".chain-row:not(.heads)").first.wait_for()


def test_failed_audit_of_a_live_ledger_is_named_and_its_command_exists(
    page: Any, ledger: Ledger, aver_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    write_failed_audit(aver_home, tmp_path / "shop")
    with serve(ledger) as running:
        page.goto(running.server.link)
        page.locator(".tile .audits", has_text="1 audit failed: protocol.lies").wait_for()
        page.get_by_text("Nothing was refused.").wait_for()  # The operator's own end of a trace is no refusal.
        go(page, "#/protocol/protocol.lies")
        # A live ledger has no file of its name: the command takes the ledger of this machine.
        assert page.locator(".band .command code").first.inner_text().startswith("aver verify --ledger sqlite:///")


def test_storage_that_is_refused_is_no_error(page: Any, served: ServedExplorer) -> None:
    page.add_init_script("indexedDB.open = () => { throw new DOMException('refused', 'SecurityError'); };")
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()  # The pins of the link hold for this visit.
    assert "came from the server of this ledger" in page.locator(".band").inner_text()


def test_key_that_was_rotated_meanwhile_is_no_break(page: Any, served: ServedExplorer, filled: Ledger) -> None:
    page.goto(served.server.link)
    page.locator(".band.verified").wait_for()
    filled.keys.rotate("ledger")
    filled.append("codex.two", draft("sealed by the new key"))
    page.locator(".band.qualified").wait_for()  # The reader has not pinned the new key, and nothing is broken.
    assert page.locator(".band .finding.failed").count() == 0


def test_sessions_and_search_come_from_the_index(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    sample.rich(ledger, tmp_path)
    with serve(ledger) as running:
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, "#/sessions")
        page.locator("table.sessions tbody tr").filter(has_text="Round half up").wait_for()
        page.get_by_text("from the server's index, which proves nothing").wait_for()
        page.keyboard.press("/")
        page.keyboard.type("sum*")
        page.keyboard.press("Enter")
        page.locator(".hits li").first.wait_for()
        page.get_by_text("Places from the server's index, texts from its records").wait_for()
        # A few words around the hit, which the page cuts from the record.
        page.locator(".hits .excerpt mark").first.wait_for()
        assert page.locator(".hits .excerpt mark").first.inner_text().lower() == "sum"
        page.locator(".hits a").first.click()
        page.get_by_text("computed here").first.wait_for()


def test_file_is_judged_beside_the_ledger(page: Any, filled: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "bundle")
    filled.append("codex.two", draft())
    with serve(filled) as running:
        page.goto(running.server.link)
        page.locator(".band.verified").wait_for()
        go(page, "#/open")
        page.get_by_test_id("folder").set_input_files(tmp_path / "bundle")
        page.locator(".live").wait_for(state="detached")
        # Its export has the pins of the ledger. That the ledger has grown since then is no rollback of the export.
        page.locator(".band.verified").wait_for()
        assert page.locator(".live").count() == 0
        page.get_by_role("button", name="Back to").click()
        page.locator(".band.verified").wait_for()
        page.locator(".live.on").wait_for()


def test_request_is_followed_until_it_is_answered(page: Any, filled: Ledger) -> None:
    ada = somebody("ada")
    enrol_approver(filled, ada)
    request = opened(filled)
    with serve(filled) as running:
        page.goto(running.server.link)
        page.get_by_role("link", name="rm -rf build").first.click()
        page.get_by_text("then it is denied").wait_for()
        assert f"aver approvals approve {request.id[:8]}" in page.locator(".answers").inner_text()
        assert "computed here: the same" in page.locator("article").inner_text()
        deny(filled, request, ada, shown="seen")
        page.locator(".sentence .word").filter(has_text="denied").wait_for()
        assert page.locator(".answers").count() == 0
        page.get_by_role("link", name="record", exact=True).click()
        words = page.locator("#section-authority > p").first.inner_text()
        assert words == "Denied by person:ada."


def test_passkey_is_enrolled_and_answers(page: Any, filled: Ledger) -> None:
    ada = somebody("ada")
    enrol_approver(filled, ada)
    with serve(filled) as running:
        devices = page.context.new_cdp_session(page)
        devices.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
        }
        devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        page.goto(running.server.link)
        wait_for_verdict(page)
        go(page, "#/approvals")
        page.get_by_label("Person").fill("person:ada-phone")
        page.get_by_role("button", name="Make a passkey").click()
        command = page.locator("code").filter(has_text="aver approvals endorse").inner_text()
        endorse_passkey(filled, read_enrolment_code(command.split()[3]), ada)
        request = opened(filled, "git push --force")
        page.get_by_role("link", name="git push --force").first.click()
        page.locator("pre.shown").filter(has_text="git push --force").wait_for()
        page.get_by_role("button", name="Approve with a passkey").click()
        page.locator(".sentence .word").filter(has_text="approved").wait_for()
        assert request.id in page.locator("article").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_live_views_are_accessible(chromium: Any, filled: Ledger, tmp_path: Path, scheme: str) -> None:
    sample.rich(filled, tmp_path)
    enrol_approver(filled, somebody("ada"))
    request = opened(filled)
    with serve(filled) as running:
        context = chromium.new_context(color_scheme=scheme, bypass_csp=True)  # Only so that axe can be put in.
        page = context.new_page()
        page.goto(running.server.link)
        wait_for_verdict(page)
        page.evaluate(AXE.read_text())
        for view in (
            "#/",
            "#/sessions",
            f"#/approvals/{request.id}",
            "#/approvals",
            "#/search/sum*",
            "#/chain/codex.two",
        ):
            go(page, view)
            page.wait_for_timeout(600)
            found = page.evaluate(AXE_RULES)
            assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]] == [], view
        context.close()
