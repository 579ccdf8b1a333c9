"""Values as Cline writes them: times, counts of tokens, lists, what it keeps of a task's surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aver.ingest.deed import Tokens
from aver.ingest.times import from_ms

__all__ = ["at", "face_of", "is_before", "listed", "text_in_message", "tokens_in"]

_COUNTS = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost")
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
    """Cline counts what was cached apart from what went in."""
    counts = info if isinstance(info, Mapping) else {}
    native = {name: counts[name] for name in _COUNTS if _is_count(counts.get(name))}
    if not any(native.values()):
        return None
    parts = [native[name] for name in ("tokensIn", "cacheWrites", "cacheReads") if name in native]
    return Tokens(
        input=sum(map(int, parts)) if parts else None,
        output=int(native["tokensOut"]) if "tokensOut" in native else None,
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
