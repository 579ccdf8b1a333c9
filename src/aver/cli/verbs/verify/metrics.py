"""Metrics of verifications for a monitor, in the text format of Prometheus.

One run and a watch write the same names. No metric is per chain, so their number does not grow with the ledger. All
have the label `subject`, so that a machine can watch several ledgers:

    # HELP aver_verify_exit_code Exit code of the last run: 0 is good.
    # TYPE aver_verify_exit_code gauge
    aver_verify_exit_code{subject="ledger 0192…"} 0

They are written to a file, or served to a Prometheus on the same machine: `GET /metrics`, on the loopback address only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.atomic import replace_file
from aver.serving.server_thread import serve_on_thread

if TYPE_CHECKING:
    from aver.verdict import Verdict

STATUSES = ("verified", "qualified", "failed", "empty")

FILE_MAX = 1024 * 1024
"""Largest metrics file that is read, in bytes. Aver writes far smaller ones."""

FILE_PREFIX = b"# HELP aver_"

_RESTORED_TIMES = re.compile(
    rb"^aver_verify_(last_success|last_whole)_timestamp_seconds\{[^\n]*\} ([0-9]{1,12}(?:\.[0-9]{1,6})?)$", re.MULTILINE
)
"""The times that a new process can only know from the file of the process before it."""

MetricSample = tuple[str, float]
"""Further labels, as they are written, and a value."""


class Metrics:
    """Counts since this process began, and the results of its last round."""

    def __init__(self) -> None:
        self._last_run = self._seconds = 0.0
        self._when = {"last_success": 0.0, "last_whole": 0.0}
        self._code = 0
        self._runs = self._bad_runs = self._errors = self._records = 0
        self._last: Sequence[Verdict] = ()
        self._subject = ""
        self._failures: dict[str, int] = {}

    def restore_times(self, before: bytes) -> None:
        """Take over the times of the last good rounds from metrics that an earlier process wrote."""
        for name, value in _RESTORED_TIMES.findall(before):
            self._when[name.decode()] = self._when[name.decode()] or float(value)

    def observe(self, verdicts: Sequence[Verdict], seconds: float, code: int) -> None:
        """Count a round: its verdicts, how long it took, and the exit code that one run would end with."""
        self._last, self._seconds, self._code = verdicts, seconds, code
        subjects = dict.fromkeys(verdict.subject for verdict in verdicts)
        self._subject = next(iter(subjects)) if len(subjects) == 1 else f"{len(subjects)} things"
        self._last_run = time.time()
        self._runs += 1
        self._bad_runs += code != 0
        self._records += sum(verdict.records for verdict in verdicts)
        if code == 0:
            self._when["last_success"] = self._last_run
            # A round that continued from an earlier one did not read every record.
            if not any(verdict.earlier for verdict in verdicts):
                self._when["last_whole"] = self._last_run
        for verdict in verdicts:
            for finding in verdict.findings:
                if finding.status == "failed":
                    self._failures[finding.code] = self._failures.get(finding.code, 0) + 1

    def observe_error(self, code: int) -> None:
        """Count a round that could not be carried out."""
        self._last, self._code = (), code
        self._last_run = time.time()
        self._runs += 1
        self._bad_runs += 1
        self._errors += 1

    def text(self) -> str:
        """The metrics as Prometheus reads them."""
        lines = []
        # The three characters that the format wants escaped in the value of a label.
        escaped = self._subject.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        subject = f'"{escaped}"'
        for name, kind, words, samples in self._families():
            lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
            for labels, value in samples:
                number = str(int(value)) if value == int(value) else f"{value:.6f}"
                lines.append(f"{name}{{subject={subject}{labels}}} {number}")
        return "\n".join(lines) + "\n"

    def _families(self) -> Iterator[tuple[str, str, str, list[MetricSample]]]:
        """Each metric: name, type, help text and samples. Every code has a sample, so that a graph starts at 0."""
        from aver.verdict import load_codes, worst_status

        last, when = self._last, self._when
        status = worst_status(verdict.status for verdict in last) if last else None
        yield (
            "aver_verify_status",
            "gauge",
            "1 for the status of the last run.",
            [(f',status="{name}"', float(name == status)) for name in STATUSES],
        )
        for name, kind, words, value in (
            ("exit_code", "gauge", "Exit code of the last run: 0 is good.", self._code),
            ("last_run_timestamp_seconds", "gauge", "When the last run ended.", self._last_run),
            (
                "last_success_timestamp_seconds",
                "gauge",
                "When a run last ended with exit code 0.",
                when["last_success"],
            ),
            ("last_whole_timestamp_seconds", "gauge", "The same, of all records at once.", when["last_whole"]),
            ("duration_seconds", "gauge", "How long the last run took.", self._seconds),
            ("runs_total", "counter", "Runs since this process began.", self._runs),
            ("bad_runs_total", "counter", "Those of them with another exit code than 0.", self._bad_runs),
            ("errors_total", "counter", "Those of them that could not be carried out.", self._errors),
            ("records_total", "counter", "Records verified since this process began.", self._records),
            ("chains", "gauge", "Chains in the last run.", sum(verdict.chains for verdict in last)),
            ("tenants", "gauge", "Verdicts in the last run: tenants of a ledger, or things.", len(last)),
            ("records", "gauge", "Records there were in the last run.", sum(one.records + one.earlier for one in last)),
            ("earlier_records", "gauge", "Those of them verified earlier.", sum(verdict.earlier for verdict in last)),
        ):
            yield f"aver_verify_{name}", kind, words, [("", float(value))]
        yield (
            "aver_verify_failures_total",
            "counter",
            "Findings that failed since this process began, by code.",
            [(f',code="{code}"', float(self._failures.get(code, 0))) for code in load_codes()],
        )


def check_metrics_path(path: Path) -> None:
    """Raise `NotFound` if the directory is missing, `BadInput` if another file would be overwritten."""
    if not path.parent.is_dir():
        raise NotFound(f"there is no directory {path.parent}", advice="make it first")
    before = _read_existing(path)
    if before and not before.startswith(FILE_PREFIX):
        raise BadInput(f"{path} is not a file of metrics, and is not overwritten", advice="give another name")


def write_metrics(path: Path, metrics: Metrics) -> None:
    """Replace the file atomically, so that a monitor never reads half of it. Any user may read it."""
    metrics.restore_times(_read_existing(path))
    replace_file(path, metrics.text().encode("utf-8", "backslashreplace"), mode=0o644)


def _read_existing(path: Path) -> bytes:
    from aver.files.regular import open_file

    try:
        with open_file(path) as file:
            return file.read(FILE_MAX)
    except NotFound:
        return b""


ADDRESS = "127.0.0.1"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_TIMEOUT_SECONDS = 5.0
"""Seconds for one request. They are answered one by one, so that a slow client costs others no more than this."""


@contextmanager
def serve_metrics(port: int, text: Callable[[], str]) -> Iterator[None]:
    """Answer requests on a separate thread until the context ends."""

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_SECONDS
        server_version, sys_version = "aver", ""

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            body = (text() if found else "metrics are at /metrics\n").encode("utf-8", "backslashreplace")
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Log nothing: a monitor asks every few seconds."""

    try:
        server = HTTPServer((ADDRESS, port), Handler)
    except OSError as error:
        words = f"cannot serve metrics at {ADDRESS}:{port}: {error.strerror}"
        raise Unavailable(words, advice="choose another --metrics-port") from error
    with serve_on_thread(server, "aver-metrics"):
        yield
