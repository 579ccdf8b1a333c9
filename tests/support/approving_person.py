"""A person who answers requests for approval while something else runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aver import open_ledger
from aver.gate.approvals import ApprovalRequest, approve, deny, enrol_approver, recent_requests
from support.approvals import SHOWN, somebody

LOOK_SECONDS = 0.2


@contextmanager
def person_at_work(wants: Callable[[ApprovalRequest], bool]) -> Iterator[list[ApprovalRequest]]:
    """Enrol a person who answers each request as `wants` says. Yields the requests that were answered, in order."""
    answered: list[ApprovalRequest] = []
    ends = threading.Event()
    with open_ledger() as ledger:
        person = somebody("ada")
        ledger.keys.trust(person.public)
        enrol_approver(ledger, person)

        def work() -> None:
            while not ends.wait(LOOK_SECONDS):
                known = {request.id for request in answered}
                for request in [each for each in recent_requests(ledger) if each.id not in known]:
                    (approve if wants(request) else deny)(ledger, request, person, shown=SHOWN)
                    answered.append(request)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield answered
        finally:
            ends.set()
            thread.join()
