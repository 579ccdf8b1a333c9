"""The wrappers that `@aver.audit` puts around a function, one for each form of a function.

Each wrapper has the form of its function, so that `inspect` and frameworks see no difference. A generator is the
current call only while its own body runs. At a `yield` its consumer runs, in the same context.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from aver.recording.drafts import CallEnding
from aver.recording.run import CallRun, ending_from_error

if TYPE_CHECKING:
    from aver.recording.decorator import AuditedFunction

VALUES_KEPT_MAX = 1000
"""Most values of a stream that its outcome records. It counts all."""


def wrap_function(function: Callable[..., Any], how: AuditedFunction) -> Callable[..., Any]:
    """Wrap a function in the wrapper of its form."""
    called = type(function).__call__ if not inspect.isroutine(function) else function  # An object with `__call__`.
    for has_form, wrap in (
        (inspect.isasyncgenfunction, _wrap_async_generator),
        (inspect.iscoroutinefunction, _wrap_coroutine),
        (inspect.isgeneratorfunction, _wrap_generator),
    ):
        if has_form(function) or has_form(called):
            return wrap(function, how)
    return _wrap_plain(function, how)


def _wrap_plain(function: Callable[..., Any], how: AuditedFunction) -> Callable[..., Any]:
    @functools.wraps(function)
    def audited(*args: Any, **kwargs: Any) -> Any:
        run = how.begin_run("function", args, kwargs)
        run.seal_intent()
        try:
            with run.make_current():
                result = function(*args, **kwargs)
        except BaseException as error:
            run.seal_raised(ending_from_error(error, run.elapsed_ms()))
            raise
        run.seal_returned(_returned_ending(run, how, result), result)
        return result

    return audited


def _wrap_coroutine(function: Callable[..., Awaitable[Any]], how: AuditedFunction) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(function)
    async def audited(*args: Any, **kwargs: Any) -> Any:
        run = how.begin_run("coroutine", args, kwargs)
        await run.seal_intent_async()
        try:
            with run.make_current():
                result = await function(*args, **kwargs)
        except GeneratorExit as error:  # The coroutine is being closed: it must not await any more.
            run.seal_raised(ending_from_error(error, run.elapsed_ms()))
            raise
        except BaseException as error:
            await run.seal_raised_async(ending_from_error(error, run.elapsed_ms()))
            raise
        await run.seal_returned_async(_returned_ending(run, how, result), result)
        return result

    return audited


def _returned_ending(run: CallRun, how: AuditedFunction, result: Any) -> CallEnding:
    took = run.elapsed_ms()
    shown = how.render_result(result)
    return CallEnding(status="success", words="returned", result=shown, duration_ms=took, facts=how.result_facts())


class _StreamRecord:
    """Counts the values that went in and out of a generator, and measures how long its own body ran."""

    def __init__(self, run: CallRun, how: AuditedFunction) -> None:
        self._run = run
        self._how = how
        self._values: list[Any] = []
        self.counts = {"yielded": 0, "sent": 0, "thrown": 0}
        self._current = run.make_current()
        self._busy = 0.0
        self._since = 0.0

    def __enter__(self) -> None:
        """One step of the body."""
        self._current.__enter__()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._busy += time.monotonic() - self._since
        self._current.__exit__(None, None, None)

    def note_yielded(self, value: Any) -> None:
        self.counts["yielded"] += 1
        if self._how.can_show_result and len(self._values) < VALUES_KEPT_MAX:
            self._values.append(self._how.render_result(value))

    def returned_ending(self, value: Any) -> CallEnding:
        words = f"ended after {self.counts['yielded']} values"
        result = {**self.counts, "values": self._values, "returned": self._how.render_result(value)}
        return CallEnding(status="success", words=words, result=result, **self._timing_fields())

    def raised_ending(self, error: BaseException) -> CallEnding:
        ending = ending_from_error(error, 0)
        words = (
            f"was closed after {self.counts['yielded']} values" if isinstance(error, GeneratorExit) else ending.words
        )
        result = {**self.counts, "values": self._values, **(ending.result or {})}
        return CallEnding(status=ending.status, words=words, error=ending.error, result=result, **self._timing_fields())

    def _timing_fields(self) -> dict[str, Any]:
        busy = {"busy_ms": round(self._busy * 1000)}
        return {"duration_ms": self._run.elapsed_ms(), "metrics": busy, "facts": self._how.result_facts()}


def _wrap_generator(function: Callable[..., Generator[Any, Any, Any]], how: AuditedFunction) -> Callable[..., Any]:
    @functools.wraps(function)
    def audited(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = function(*args, **kwargs)
        run = how.begin_run("generator", args, kwargs)
        run.seal_intent()
        stream = _StreamRecord(run, how)
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
                stream.note_yielded(value)
                try:
                    given = yield value
                except GeneratorExit:
                    with stream:
                        inner.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the body's to catch
                    stream.counts["thrown"] += 1
                    step, given = inner.throw, error
                else:
                    stream.counts["sent"] += given is not None
                    step = inner.send
        except BaseException as error:
            run.seal_raised(stream.raised_ending(error))
            raise
        run.seal_returned(stream.returned_ending(result), result)
        return result

    return audited


def _wrap_async_generator(
    function: Callable[..., AsyncGenerator[Any, Any]], how: AuditedFunction
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def audited(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **kwargs)
        run = how.begin_run("async generator", args, kwargs)
        await run.seal_intent_async()
        stream = _StreamRecord(run, how)
        step: Callable[[Any], Awaitable[Any]] = inner.asend
        given: Any = None
        try:
            while True:
                try:
                    with stream:
                        value = await step(given)
                except StopAsyncIteration:
                    break
                stream.note_yielded(value)
                try:
                    given = yield value
                except GeneratorExit:
                    with stream:
                        await inner.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the body's to catch
                    stream.counts["thrown"] += 1
                    step, given = inner.athrow, error
                else:
                    stream.counts["sent"] += given is not None
                    step = inner.asend
        except BaseException as error:
            await run.seal_raised_async(stream.raised_ending(error))
            raise
        await run.seal_returned_async(stream.returned_ending(None), None)

    return audited
