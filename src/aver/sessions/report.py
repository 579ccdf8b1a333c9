"""Makes a report: sessions as one HTML file, with their records inside, signed by the ledger's key.

    with open_ledger() as ledger:
        make_report(ledger, [chains], Path("report.html"))

1. The chains of the sessions are exported as a bundle into a temporary directory.
2. The bundle is verified. Its verdict is the one that the report states.
3. The page is written, and the files of the bundle into its blocks.
4. The ledger's key signs a statement over the digest of all that. The statement's block is written last.

The file appears complete or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from aver.capsule.sealed import hold_signer
from aver.clock import now
from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.new_file import PRIVATE, check_new_path, open_new_file
from aver.html import PAGE_SCRIPT
from aver.keys import SeedSigner, sign_statement
from aver.ledger import Ledger
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.layout import BLOBS, INDEX, read_index
from aver.ledger.bundle.verify import BundleJudge
from aver.ledger.read_only import ReadOnlyLedger
from aver.sessions.figures import compute_totals
from aver.sessions.report_file import CLOSING, FILE_OPENING, PURPOSE, STATEMENT_OPENING, dump_block
from aver.sessions.report_page import render_end, render_front, render_session
from aver.sessions.sessions import SessionChains
from aver.sessions.story import read_story
from aver.text import plural
from aver.verdict import CHECKS, Verdict, VerifyOptions, conclude

_ENCODED_CHUNK = 3 * 1024 * 256
"""Bytes of a file that are encoded at a time: a multiple of three, so that the pieces join to one base64 text."""


@dataclass(frozen=True, slots=True)
class MadeReport:
    """A report that was written, and the verdict that it states."""

    path: Path
    subject: str
    sessions: int
    verdict: Verdict
    sha256: str
    signed_by: str


def make_report(
    ledger: Ledger,
    sessions: Sequence[SessionChains],
    out: Path,
    *,
    since: str | None = None,
    until: str | None = None,
    force: bool = False,
) -> MadeReport:
    """Write a report of sessions. The numbers are those of the module's text.

    `since` and `until` are the time that the sessions were chosen by; for one session, its first and last step. Raises
    `BadInput` if there is no session, if the file exists, or if the ledger has no key at hand that signs statements.
    """
    if isinstance(ledger, ReadOnlyLedger):
        raise BadInput("a report is signed by the ledger's key", advice="import the bundle, or report from the ledger")
    if not sessions:
        raise BadInput("there is no session to report", advice="aver sessions lists the sessions")
    check_new_path(out, force=force)  # Before the long work.
    names = list(dict.fromkeys(name for chains in sessions for name in chains.names))
    totals = [compute_totals(ledger, chains) for chains in sessions]
    subject = f"session {sessions[0].tool} {sessions[0].session}"
    if len(sessions) > 1:
        subject = f"{plural(len(sessions), 'session')} of coding agents"
    if since is None and until is None:
        since = min((each.started for each in totals if each.started), default=None)
        until = max((each.ended for each in totals if each.ended), default=None)
    try:
        with TemporaryDirectory(prefix="aver-report-") as directory, hold_signer(ledger.attesting_signer()) as signer:
            if not isinstance(signer, SeedSigner):
                raise BadInput("this ledger's signer signs capsules only, not statements")
            place = Path(directory) / "bundle"
            export_bundle(ledger, place, chains=names)  # 1.
            options = VerifyOptions(ledger.ring(), ledger.config.home, examiners=ledger.examiners)
            judge = BundleJudge(place, read_index(place), options)
            verdict = conclude(subject, judge.judge(), expected=(*CHECKS, "index"))  # 2.
            made_at = now()
            digest = hashlib.sha256()
            with open_new_file(out, force=force, mode=PRIVATE) as file:  # 3.
                pieces = _render(ledger, sessions, subject, verdict, made_at=made_at, signer=signer.fingerprint)
                for piece in chain(pieces, _encode_files(place), (STATEMENT_OPENING,)):
                    encoded = piece.encode("utf-8", "replace")
                    digest.update(encoded)
                    file.write(encoded)
                end = f"{CLOSING}\n<script>{PAGE_SCRIPT}</script>\n</body>\n</html>\n".encode()
                digest.update(end)
                sha256 = digest.hexdigest()
                content = {  # 4.
                    "v": 1,
                    "subject": subject,
                    "since": since,
                    "until": until,
                    "heads": {name: {"count": head.count, "hash": head.hash} for name, head in judge.heads.items()},
                    "verdict": {
                        "status": verdict.status,
                        "level": verdict.level,
                        "records": verdict.records,
                        "chains": verdict.chains,
                    },
                    "made_at": made_at,
                    "sha256": sha256,
                }
                statement = sign_statement(PURPOSE, content, (signer,))
                file.write(dump_block(statement) + end)
    except OSError as error:
        raise Unavailable(f"the report cannot be written: {error.strerror}", advice="set TMPDIR") from error
    return MadeReport(out, subject, len(sessions), verdict, sha256, signer.fingerprint)


def _render(
    ledger: Ledger, sessions: Sequence[SessionChains], subject: str, verdict: Verdict, *, made_at: str, signer: str
) -> Iterator[str]:
    totals = [compute_totals(ledger, chains) for chains in sessions]
    yield from render_front(subject, totals, verdict, made_at=made_at, signer=signer)
    for number, (chains, session) in enumerate(zip(sessions, totals, strict=True)):
        entries = read_story(ledger, chains)
        yield from render_session(number, session, entries, ledger.blob, with_title=len(sessions) > 1)
    yield from render_end(verdict, totals, made_at=made_at)


def _encode_files(directory: Path) -> Iterator[str]:
    """The blocks with the files of a bundle, piece by piece. The index comes first."""
    names = sorted(name for name in os.listdir(directory) if name not in (INDEX, BLOBS))
    blobs = sorted(os.listdir(directory / BLOBS)) if (directory / BLOBS).is_dir() else []
    for name in (INDEX, *names, *(f"{BLOBS}/{blob}" for blob in blobs)):
        yield f'{FILE_OPENING}{name}">'
        with open(directory / name, "rb") as file:
            while chunk := file.read(_ENCODED_CHUNK):
                yield base64.b64encode(chunk).decode("ascii")
        yield f"{CLOSING}\n"
