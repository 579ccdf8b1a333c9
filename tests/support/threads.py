"""Work in many threads that start at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do it in many threads that start at once; results and errors, by number."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
