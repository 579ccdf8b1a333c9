"""One conversation with a mail server, bounded in time and size.

`smtplib` waits for each byte anew, and keeps every line of an answer. A server that sends one byte a second, or lines
without end, would hold the executor for ever, or fill its memory. Here the whole conversation has a time. An answer has
a limit, too, and the form of RFC 5321: lines that begin with one and the same code of three digits.
"""

from __future__ import annotations

import smtplib
import socket
import threading
from contextlib import suppress

from aver.lazy_pattern import lazy_pattern

STEP_SECONDS = 30.0
"""Seconds without a byte from the server."""

CONVERSATION_SECONDS = 120.0
"""Seconds for the whole conversation. A server may look at a message for long before it takes it."""

LINE_MAX = 4096
"""Most bytes of a line of an answer. RFC 5321 allows 512."""

LINES_MAX = 100
"""Most lines of one answer."""

_ANSWER_LINE = lazy_pattern(rb"([2-5][0-9]{2})(?:([ -])([^\n]*))?\r?\n")


class MailConversation(smtplib.SMTP):
    """A connection to a mail server, which ends when its time is over. `close` it."""

    def __init__(self, host: str, port: int) -> None:
        self._is_over = False
        self._watch = threading.Timer(CONVERSATION_SECONDS, self._break_off)
        self._watch.daemon = True
        self._watch.start()
        try:
            super().__init__(host, port, timeout=STEP_SECONDS)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._watch.cancel()
        super().close()

    def _break_off(self) -> None:
        self._is_over = True
        # While TLS begins, the socket is not here: that has `STEP_SECONDS` as a whole, and no answer is read after it.
        # Not the shutdown of TLS: it would let the other thread go on without encryption.
        with suppress(OSError):
            if isinstance(self.sock, socket.socket):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def getreply(self) -> tuple[int, bytes]:
        """Read one answer: its code and its words. Raises `SMTPServerDisconnected` where none comes."""
        words, codes = list[bytes](), set[bytes]()
        while len(words) < LINES_MAX:
            line = _ANSWER_LINE.fullmatch(self._read_line())
            if line is None:
                raise self._give_up("the server sent something that is no answer")
            codes.add(line[1])
            words.append((line[3] or b"").strip())
            if len(codes) > 1:
                raise self._give_up("the server sent an answer with two codes")
            if line[2] != b"-":
                return int(line[1]), b"\n".join(words)
        raise self._give_up(f"the server sent an answer of more than {LINES_MAX} lines")

    def _read_line(self) -> bytes:
        if self._is_over or self.sock is None:
            raise self._give_up(f"the conversation took more than {CONVERSATION_SECONDS:.0f} seconds")
        if self.file is None:
            self.file = self.sock.makefile("rb")
        try:
            line = self.file.readline(LINE_MAX)
        except OSError as error:
            raise self._give_up(str(error)) from error
        if self._is_over or not line:
            raise self._give_up("the connection ended, or its time was over")
        return line

    def _give_up(self, words: str) -> smtplib.SMTPServerDisconnected:
        self.close()
        return smtplib.SMTPServerDisconnected(words)

    def send_text(self, message: bytes) -> tuple[int, bytes]:
        """Send the text of a message after `DATA`, and return the answer. No line of it can end the text early."""
        lines = (b"." + line if line.startswith(b".") else line for line in message.splitlines())
        self.send(b"".join(line + b"\r\n" for line in (*lines, b".")))
        return self.getreply()
