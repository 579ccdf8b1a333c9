"""One test for very many cases: a case of a corpus is checked faster than pytest sets up a test.

    @for_each(CASES, lambda case: case.name)
    def test_a_command_is_understood(case: Case) -> None:
        assert understand(case.command) == case.expected

All cases are checked, and the failure names each that is broken. The cases get no fixtures, and must not skip.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

Check = Callable[[Any], None]


def for_each(
    cases: Iterable[Any], name_of: Callable[[Any], str] = str, pending: Collection[str] = ()
) -> Callable[[Check], Callable[[], None]]:
    """Make one test of a check and its cases. A pending case is expected to break the check, and must."""
    given = list(cases)
    values = {name_of(case): case for case in given}
    assert len(values) == len(given), "each case needs a name of its own"

    def decorate(check: Check) -> Callable[[], None]:
        def run() -> None:
            __tracebackhide__ = True
            assert values, "there are no cases"
            broken: dict[str, str] = {}
            for name, case in values.items():
                try:
                    check(case)
                except (Exception, pytest.fail.Exception) as error:
                    broken[name] = f"{type(error).__name__}: {error}"
            lines = [f"{name}: {why}" for name, why in broken.items() if name not in pending]
            lines += [f"{name}: is pending, and holds by now" for name in values.keys() & pending - broken.keys()]
            if lines:
                pytest.fail("\n".join([f"{len(lines)} of {len(values)} cases:", *lines]), pytrace=False)

        run.__name__, run.__qualname__, run.__doc__ = check.__name__, check.__qualname__, check.__doc__
        run.__module__ = check.__module__
        return run

    return decorate


def first_now(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """Give the parameters of a costly test: `make test` runs the first of them, `make test-more` the others."""
    given = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[] if at < count else pytest.mark.more) for at, case in enumerate(given)]
