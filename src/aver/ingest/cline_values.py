"""Values as Cline writes them: times, counts of tokens, lists, what it keeps of a task's surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.ingest.deed import Tokens
from aver.ingest.times import from_ms

__all__ = ["at", "face_of", "is_before", "listed", "text_in_message", "tokens_in", "tokens_of_answer"]

_COUNTS = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost")
_METRICS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "cost")
_HOST = ("cline_version", "os_name", "os_version", "host_name", "host_version")


def face_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth telling of a task's surroundings: the newest entries of what Cline keeps."""
    model = next((one for one in reversed(listed(metadata.get("model_usage"))) if isinstance(one, dict)), {})
    host = next((one for one in reversed(listed(metadata.get("environment_history"))) if isinstance(one, dict)), {})
    told = {
        "model": model.get("model_id"),
        "provider": model.get("model_provider_id"),
        "mode": model.get("mode"),
        **{name: host.get(name) for name in _HOST},
    }
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def tokens_in(info: Any) -> Tokens | None:
    """Of a task's request. It counts what was cached apart from what went in."""
    native = _counts(info, _COUNTS)
    parts = [native[name] for name in ("tokensIn", "cacheWrites", "cacheReads") if name in native]
    return _spent(native, sum(map(int, parts)) if parts else None, "tokensOut")


def tokens_of_answer(metrics: Any) -> Tokens | None:
    """Of an answer in a session. What was cached is part of what went in."""
    native = _counts(metrics, _METRICS)
    return _spent(native, int(native["inputTokens"]) if "inputTokens" in native else None, "outputTokens")


def _counts(told: Any, names: tuple[str, ...]) -> dict[str, Any]:
    counts = told if isinstance(told, Mapping) else {}
    return {name: counts[name] for name in names if _is_count(counts.get(name))}


def _spent(native: dict[str, Any], went_in: int | None, came_out: str) -> Tokens | None:
    if not any(native.values()):
        return None
    return Tokens(
        input=went_in,
        output=int(native[came_out]) if came_out in native else None,
        cost_usd=float(native["cost"]) if "cost" in native else None,
        native=native,
    )


def at(message: Any) -> str | None:
    return from_ms(message.get("ts")) if isinstance(message, dict) else None


def is_before(one: Any, other: Any) -> bool:
    return _is_count(one) and (not _is_count(other) or one <= other)


def text_in_message(message: Mapping[str, Any]) -> str:
    text = message.get("text")
    return text if isinstance(text, str) else ""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53
