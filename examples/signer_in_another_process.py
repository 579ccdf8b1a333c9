"""Keep the key out of the process that seals: a signer that asks another process.

    python examples/signer_in_another_process.py

A signer is anything with a `fingerprint` and a `sign`. Here the key lives in a child process that reads digests, one
per line, and answers with signatures; the ledger's process never sees the seed. In earnest the other process would run
as another user, behind a socket.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

import aver

CHAIN = "demo.remote-signer"


def serve() -> None:
    """The other process: its public key first, then one signature per digest."""
    signer = aver.SeedSigner.generate()
    print(signer.public.ed25519, flush=True)
    for line in sys.stdin:
        print(signer.sign(line.strip()).ed25519, flush=True)


class RemoteSigner:
    """Asks the process that has the key."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.public = aver.PublicKey(self._answer())
        self.fingerprint = self.public.fingerprint

    def sign(self, digest: str) -> aver.Signature:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{digest}\n")
        self._process.stdin.flush()
        return aver.Signature(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise aver.Unavailable("the signer is gone", advice="start it again; nothing was recorded")
        return answer

    def __enter__(self) -> RemoteSigner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, RemoteSigner() as signer:
        with aver.open_ledger(home=Path(directory), signer=signer) as ledger:
            for step in range(3):
                ledger.append(CHAIN, aver.Capsule(type="tool", outcome=aver.Outcome(summary=f"step {step}")))
            # Nobody here knows the key unless it is given.
            print(f"without the key: {ledger.verify(CHAIN).status}")
            print(f"with the key: {ledger.verify(CHAIN, keys=[signer.public]).status}")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
