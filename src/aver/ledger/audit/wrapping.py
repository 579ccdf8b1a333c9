"""The wrappers that `@aver.audit` puts around a function: one for each form that a function has.

Each keeps the form, so that those who ask (`inspect`, frameworks) get the same answer as before. A stream is current
only while its body runs, from one `yield` to the next: between them its consumer runs, in the same context.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from aver.ledger.audit.drafts import Ending
from aver.ledger.audit.run import Run, failure

if TYPE_CHECKING:
    from aver.ledger.audit.decorator import Audit

__all__ = ["wrapped"]

VALUES_KEPT = 1000
"""Values of a stream that its outcome records; all are counted."""


def wrapped(function: Callable[..., Any], how: Audit) -> Callable[..., Any]:
    """The function, audited, in the form it has."""
    called = type(function).__call__ if not inspect.isroutine(function) else function  # an object that can be called
    for has_form, wrap in (
        (inspect.isasyncgenfunction, _async_generator),
        (inspect.iscoroutinefunction, _coroutine),
        (inspect.isgeneratorfunction, _generator),
    ):
        if has_form(function) or has_form(called):
            return wrap(function, how)
    return _function(function, how)


def _function(function: Callable[..., Any], how: Audit) -> Callable[..., Any]:
    @functools.wraps(function)
    def audited(*args: Any, **kwargs: Any) -> Any:
        run = how.begin("function", args, kwargs)
        run.open()
        try:
            with run.running():
                result = function(*args, **kwargs)
        except BaseException as error:
            run.raised(failure(error, run.elapsed_ms()))
            raise
        run.returned(_returned(run, how, result), result)
        return result

    return audited


def _coroutine(function: Callable[..., Awaitable[Any]], how: Audit) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(function)
    async def audited(*args: Any, **kwargs: Any) -> Any:
        run = how.begin("coroutine", args, kwargs)
        await run.open_async()
        try:
            with run.running():
                result = await function(*args, **kwargs)
        except GeneratorExit as error:  # It is being closed: nothing may be awaited any more.
            run.raised(failure(error, run.elapsed_ms()))
            raise
        except BaseException as error:
            await run.raised_async(failure(error, run.elapsed_ms()))
            raise
        await run.returned_async(_returned(run, how, result), result)
        return result

    return audited


def _returned(run: Run, how: Audit, result: Any) -> Ending:
    took = run.elapsed_ms()
    shown = how.result(result)
    return Ending(status="success", words="returned", result=shown, duration_ms=took, facts=how.result_facts())


class _Stream:
    """What went in and out of a generator, and how long its own body took."""

    def __init__(self, run: Run, how: Audit) -> None:
        self._run = run
        self._how = how
        self._values: list[Any] = []
        self._counts = {"yielded": 0, "sent": 0, "thrown": 0}
        self._running = run.running()
        self._busy = 0.0
        self._since = 0.0

    def __enter__(self) -> None:
        """One step of the body."""
        self._running.__enter__()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._busy += time.monotonic() - self._since
        self._running.__exit__(None, None, None)

    def yielded(self, value: Any) -> None:
        self._counts["yielded"] += 1
        if self._how.shows_result and len(self._values) < VALUES_KEPT:
            self._values.append(self._how.result(value))

    def sent(self, value: Any) -> None:
        self._counts["sent"] += value is not None

    def thrown(self) -> None:
        self._counts["thrown"] += 1

    def returned(self, value: Any) -> Ending:
        words = f"ended after {self._counts['yielded']} values"
        result = {**self._so_far(), "returned": self._how.result(value)}
        return Ending(status="success", words=words, result=result, **self._times())

    def raised(self, error: BaseException) -> Ending:
        ending = failure(error, 0)
        words = (
            f"was closed after {self._counts['yielded']} values" if isinstance(error, GeneratorExit) else ending.words
        )
        result = {**self._so_far(), **(ending.result or {})}
        return Ending(status=ending.status, words=words, error=ending.error, result=result, **self._times())

    def _so_far(self) -> dict[str, Any]:
        return {**self._counts, "values": self._values}

    def _times(self) -> dict[str, Any]:
        busy = {"busy_ms": round(self._busy * 1000)}
        return {"duration_ms": self._run.elapsed_ms(), "metrics": busy, "facts": self._how.result_facts()}


def _generator(function: Callable[..., Generator[Any, Any, Any]], how: Audit) -> Callable[..., Any]:
    @functools.wraps(function)
    def audited(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        run = how.begin("generator", args, kwargs)
        run.open()
        stream = _Stream(run, how)
        step: Callable[[Any], Any] = inner.send
        given: Any = None
        try:
            while True:
                try:
                    with stream:
                        value = step(given)
                except StopIteration as stop:
                    result = stop.value
                    break
                stream.yielded(value)
                try:
                    given = yield value
                except GeneratorExit:
                    with stream:
                        inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the body's to catch
                    stream.thrown()
                    step, given = inner.throw, error
                else:
                    stream.sent(given)
                    step = inner.send
        except BaseException as error:
            run.raised(stream.raised(error))
            raise
        run.returned(stream.returned(result), result)
        return result

    return audited


def _async_generator(function: Callable[..., AsyncGenerator[Any, Any]], how: Audit) -> Callable[..., Any]:
    @functools.wraps(function)
    async def audited(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        run = how.begin("async generator", args, kwargs)
        await run.open_async()
        stream = _Stream(run, how)
        step: Callable[[Any], Awaitable[Any]] = inner.asend
        given: Any = None
        try:
            while True:
                try:
                    with stream:
                        value = await step(given)
                except StopAsyncIteration:
                    break
                stream.yielded(value)
                try:
                    given = yield value
                except GeneratorExit:
                    with stream:
                        await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the body's to catch
                    stream.thrown()
                    step, given = inner.athrow, error
                else:
                    stream.sent(given)
                    step = inner.asend
        except BaseException as error:
            await run.raised_async(stream.raised(error))
            raise
        await run.returned_async(stream.returned(None), None)

    return audited
