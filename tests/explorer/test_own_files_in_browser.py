"""Whom the page believes about files of one's own, in a real Chromium: pins and heads follow the ledger."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from aver import Capsule, Ledger, open_ledger
from aver.gate.approvals import endorse_passkey, enrol_approver, record_signed_vote
from aver.ledger.bundle import export_bundle, import_bundle
from support.approvals import SHOWN, opened, somebody
from support.browser_pages import PAGE, go, key_of, open_folder, pin, wait_for_verdict
from support.bundles import change_chain
from support.explorer_servers import serve
from support.passkeys import SoftPasskey
from support.runs import make_sealed_run

pytestmark = [pytest.mark.browser, pytest.mark.long]


def draft(text: str, result: object = None) -> Capsule:
    return Capsule(
        type="tool",
        trigger={"source": "test", "request": text},
        outcome={"status": "success", "summary": text, "result": result},
    )


def choose(page: Any, thing: Path) -> None:
    """Open another thing in the page that is open."""
    go(page, "#/open")
    page.get_by_test_id("folder" if thing.is_dir() else "files").set_input_files(thing)
    page.locator(".open-name", has_text=thing.name).wait_for()
    page.locator(".chip.verified, .chip.qualified, .chip.failed").wait_for()


def findings(page: Any) -> list[str]:
    return [text.split(" ", 1)[0] for text in page.locator(".band .finding.failed strong").all_inner_texts()]


@pytest.fixture
def bundles(filled: Ledger, tmp_path: Path) -> tuple[Path, Path]:
    """A bundle, and a newer one of the same ledger."""
    older = export_bundle(filled, tmp_path / "older").path
    filled.append("codex.two", draft("one more"))
    filled.append("ci.later", draft("a chain that came later"))
    filled.close_chain("codex.two")
    return older, export_bundle(filled, tmp_path / "newer").path


def test_older_copy_of_a_ledger_that_was_seen_is_a_rollback(
    page: Any, ledger: Ledger, bundles: tuple[Path, Path]
) -> None:
    older, newer = bundles
    open_folder(page, newer)
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for()
    choose(page, older)
    page.locator(".band.failed").wait_for()
    assert set(findings(page)) == {"ROLLBACK"}
    words = page.locator(".band").inner_text()
    assert "this browser remembers 1 records of the chain ci.later; 0 are here" in words
    go(page, "#/chain/codex.two")
    card = page.locator(".break-entry", has_text="ROLLBACK")
    card.wait_for()
    assert "remembered:" in card.inner_text()
    assert "actual:" in card.inner_text() or "here:" in card.inner_text()
    choose(page, newer)
    page.locator(".band.verified").wait_for()


@pytest.mark.parametrize(
    "claims",
    [{"ledger": None, "tenant": None}, {"tenant": None}, {"ledger": "0" * 32}],
    ids=["no owner", "no tenant", "another ledger"],
)
def test_index_that_does_not_name_its_ledger_hides_no_rollback(
    page: Any, ledger: Ledger, bundles: tuple[Path, Path], claims: dict[str, str | None]
) -> None:
    """Nobody signs the index. The records name their ledger, and pins and heads follow them."""
    older, newer = bundles
    index = json.loads((older / "index.json").read_text()) | claims
    (older / "index.json").write_text(json.dumps({name: value for name, value in index.items() if value is not None}))
    open_folder(page, newer)
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for()
    choose(page, older)
    page.locator(".band.failed").wait_for()
    assert "ROLLBACK" in findings(page)
    go(page, "#/keys")
    page.get_by_role("button", name="Unpin").wait_for()


def test_part_of_a_ledger_is_no_rollback(page: Any, ledger: Ledger, bundles: tuple[Path, Path], tmp_path: Path) -> None:
    """Its chains are compared. It says itself that others are left out."""
    open_folder(page, bundles[1])
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for()
    part = export_bundle(ledger, tmp_path / "part", chains=["ci.later"]).path
    choose(page, part)
    assert findings(page) == []
    assert "rollback" in page.locator(".band .columns > div").first.inner_text()


def test_pin_for_one_ledger_is_not_believed_for_another(
    page: Any, ledger: Ledger, bundles: tuple[Path, Path], other: Ledger, tmp_path: Path
) -> None:
    other.append("ci.other", draft("of someone else"))
    theirs = export_bundle(other, tmp_path / "theirs").path
    open_folder(page, bundles[0])
    for key in (key_of(ledger), key_of(other)):
        pin(page, key)
    page.locator(".band.verified").wait_for()
    choose(page, theirs)
    page.locator(".band.qualified").wait_for()
    go(page, "#/keys")
    assert page.get_by_role("button", name="Unpin").count() == 0
    choose(page, bundles[1])
    page.locator(".band.verified").wait_for()
    go(page, "#/keys")
    assert page.get_by_role("button", name="Unpin").count() == 2


def test_key_that_is_pinned_before_anything_is_open_is_for_what_is_opened_next(
    page: Any, ledger: Ledger, bundles: tuple[Path, Path], other: Ledger, tmp_path: Path
) -> None:
    other.append("ci.other", draft("of someone else"))
    theirs = export_bundle(other, tmp_path / "theirs").path
    page.goto(PAGE.as_uri())
    go(page, "#/keys")
    page.get_by_text("A key that you pin now is pinned for what you open next").wait_for()
    pin(page, key_of(ledger))
    choose(page, bundles[0])
    page.locator(".band.verified").wait_for()
    choose(page, theirs)
    page.locator(".band.qualified").wait_for()


def test_single_chain_has_the_pins_of_its_ledger(page: Any, ledger: Ledger, bundles: tuple[Path, Path]) -> None:
    open_folder(page, bundles[1])
    pin(page, key_of(ledger))
    page.locator(".band.verified").wait_for()
    choose(page, bundles[0] / "codex.two.json")
    assert "each was signed by a key that you pinned" in page.locator(".band").inner_text()
    assert findings(page) == []  # A file tells of some moment. Only a whole bundle is compared with what was seen.
    go(page, "#/c/codex.two/0")
    page.get_by_text("capsule://codex.two/0", exact=True).wait_for()


def test_run_has_the_pins_of_its_ledger(page: Any, tmp_path: Path) -> None:
    """The records in a `.cap` file name their ledger, as those in a bundle do."""
    run = make_sealed_run(tmp_path / "made", actions=2, gated=())
    with open_ledger(home=run.home) as made:
        open_folder(page, export_bundle(made, tmp_path / "bundle").path)
    pin(page, run.key.ed25519)
    page.get_by_text("each was signed by a key that you pinned").wait_for()
    choose(page, run.path / "run.cap")
    assert "each was signed by a key that you pinned" in page.locator(".band").inner_text()


def test_export_of_a_live_ledger_is_known_to_its_page(
    page: Any, ledger: Ledger, bundles: tuple[Path, Path], tmp_path: Path
) -> None:
    with serve(ledger) as served:
        page.goto(served.server.link)
        page.locator(".band.verified").wait_for()
        choose(page, bundles[1])
        page.locator(".band.verified").wait_for()
        page.reload()
        page.locator(".band.verified").wait_for()
        choose(page, bundles[0])
        page.locator(".band.failed").wait_for()
        assert set(findings(page)) == {"ROLLBACK"}


def test_ledger_that_lacks_what_its_copy_has_is_a_rollback(
    page: Any, filled: Ledger, aver_home: Path, tmp_path: Path
) -> None:
    shutil.copytree(aver_home, tmp_path / "earlier")
    filled.append("codex.two", draft("one more"))
    copy = export_bundle(filled, tmp_path / "copy").path
    with open_ledger(home=tmp_path / "earlier") as earlier, serve(earlier) as served:
        page.goto(served.server.link)
        page.locator(".band.verified").wait_for()
        choose(page, copy)
        page.locator(".band.verified").wait_for()
        page.get_by_role("button", name="Back to").click()
        page.locator(".band.failed").wait_for()
        assert findings(page) == ["ROLLBACK"]


@pytest.mark.parametrize("html", [False, True])
def test_copy_that_is_rolled_back_fits_in_itself(
    page: Any, ledger: Ledger, other: Ledger, tmp_path: Path, html: bool
) -> None:
    """With blobs, imports and a page of its own: only the remembered heads tell."""
    for name in ("before", "after"):
        other.append(f"ci.{name}", draft(name))
        export_bundle(other, tmp_path / name, chains=[f"ci.{name}"])
    ledger.append("ci.blobs", draft("begin"))
    import_bundle(ledger, tmp_path / "before")
    ledger.append("ci.blobs", draft("with a blob", {"output": "x" * 200_000}))
    ledger.append("ci.beside", draft("beside it", {"output": "y" * 200_000}))
    ledger.close_chain("ci.blobs")
    import_bundle(ledger, tmp_path / "after", only=["ci.after"])
    ledger.append("ci.last", draft("", {"output": "z" * 200_000}))
    open_folder(page, export_bundle(ledger, tmp_path / "bundle", html=html).path)
    pin(page, key_of(ledger))
    pin(page, key_of(other))
    page.locator(".band.verified").wait_for()
    go(page, "#/c/ci.blobs/1")
    page.get_by_role("button", name="Roll everything back to here").click()
    page.locator(".band.failed").wait_for()
    assert set(findings(page)) == {"ROLLBACK"}
    checked = page.locator(".band .columns > div").first.inner_text()
    assert checked.count("✕") == 1
    assert "index" in checked
    go(page, "#/chains")
    page.locator(".chain-row", has_text="ci.before").wait_for()
    assert page.locator(".chain-row", has_text="ci.after").count() == 0
    assert page.locator(".chain-row", has_text="ci.last").count() == 0


def test_signatures_that_fit_a_key_of_the_bundle_count_as_not_checked(page: Any, bundle: Path) -> None:
    words = "match the key in the bundle, which you have not pinned: not checked"
    open_folder(page, bundle)
    unmade = page.locator(".band .columns > div").nth(1)
    assert words in unmade.inner_text()
    shown = page.locator(".sentence").inner_text()
    records = next(word for word in shown.split() if word.isdigit())
    assert f"{records} signatures {words}" in unmade.inner_text()
    go(page, "#/keys")
    row = page.get_by_role("region", name="Keys that came along")
    assert f"{records} signatures {words}" in row.inner_text()
    assert "not pinned, not used" in row.inner_text()


def test_signature_that_does_not_fit_the_key_of_the_bundle_is_said(page: Any, bundle: Path, tmp_path: Path) -> None:
    forged = shutil.copytree(bundle, tmp_path / "forged")
    change_chain(lambda records: records[1].update(signature=records[0]["signature"]), "codex.two")(forged)
    assert open_folder(page, forged) == "Qualified"
    assert "1 signature does not match the key in the bundle" in page.locator(".band").inner_text()
    go(page, "#/keys")
    page.get_by_text("1 signature does not match the key in the bundle").wait_for()


def test_server_s_keys_are_not_called_those_of_a_bundle(page: Any, ledger: Ledger, bundle: Path) -> None:
    with serve(ledger) as served:
        page.goto(served.server.link.split("&")[0])
        assert wait_for_verdict(page) == "Qualified"
        assert "match the key that the server lists, which you have not pinned" in page.locator(".band").inner_text()


def test_every_unknown_signer_is_listed_to_compare_and_pin(page: Any, ledger: Ledger, tmp_path: Path) -> None:
    """Signers of imported chains, approvers, and one whose key did not come along. Listing pins nobody."""
    with open_ledger(tmp_path / "other.db", home=tmp_path / "elsewhere") as other:
        other.append("ci.elsewhere", draft("done elsewhere"))
        export_bundle(other, tmp_path / "theirs")
        theirs = key_of(other)
    import_bundle(ledger, tmp_path / "theirs")
    ada, phone = somebody("ada"), SoftPasskey("phone")
    enrol_approver(ledger, ada)
    endorse_passkey(ledger, phone.enrolment(ledger), ada)
    request = opened(ledger)
    record_signed_vote(ledger, request.id, phone.vote(request), shown=SHOWN)
    export_bundle(ledger, tmp_path / "bundle")
    open_folder(page, tmp_path / "bundle")
    band = page.locator(".band").inner_text()
    assert f"of person:phone is not known here: give the key {ada.public.fingerprint} of person:ada" in band
    assert "Pin this key on Keys" in band
    go(page, "#/keys")
    listed = page.get_by_role("region", name="Keys that came along")
    for key, owner, chain in ((theirs, "ledger", ".keys"), (ada.public.ed25519, "person:ada", "approvers.default")):
        row = listed.locator("tr", has_text=key[:16])
        row.wait_for()
        assert key == "".join(row.locator("code.whole").inner_text().split())
        assert owner in row.inner_text()
        assert chain in row.inner_text()
        assert "not pinned, not used" in row.inner_text()
    assert phone.fingerprint not in listed.inner_text()
    assert page.get_by_role("button", name="Unpin").count() == 0
    for key in (theirs, ada.public.ed25519, key_of(ledger)):
        listed.locator("tr", has_text=key[:16]).get_by_role("button").last.click()
        page.get_by_text("1 key pinned.").wait_for()
    go(page, "#/")
    page.locator(".band.verified").wait_for()

    (tmp_path / "one").mkdir()
    alone = tmp_path / "one" / "chain.json"
    shutil.copy(next((tmp_path / "bundle").glob("import.*.ci.elsewhere.json")), alone)
    choose(page, alone)
    go(page, "#/keys")
    stranger = listed.locator("tr", has_text=theirs[:16])
    stranger.wait_for()
    assert "its key did not come along" in stranger.inner_text()
    assert "aver keys export" in stranger.inner_text()
