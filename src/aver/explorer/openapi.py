"""The OpenAPI description of the API, for programs and for tests: every route, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aver import __version__
from aver.explorer.index.answers import BUCKETS, SORT_COLUMNS

API_VERSION = 1

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}
_HEX64: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MOMENT: Schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
_CHAIN_NAME: Schema = {"type": "string", "maxLength": 300}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _refer_to(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS: dict[str, Schema] = {
    "Problem": _object(code=_TEXT, message=_TEXT, advice=_TEXT),
    "About": _object(
        versions=_object(aver=_TEXT, api=_COUNT),
        ledger=_TEXT,
        tenant=_TEXT,
        store=_object(kind={"enum": ["sqlite", "postgresql"]}, name=_TEXT),
        page_sha256=_HEX64,
        keys_sha256=_HEX64,
        read_only=_FLAG,
        command_options={
            **_list(_TEXT),
            "description": "The options with which `aver` reaches this ledger and tenant; none where its defaults do.",
        },
        index=_refer_to("Index"),
    ),
    "Indexed": _object(
        records=_COUNT,
        of_records=_COUNT,
        sessions=_COUNT,
        of_sessions=_COUNT,
        cut=_COUNT,
        unreadable=_list(_TEXT),
        complete=_FLAG,
        note=_TEXT,
    ),
    "Index": {
        "allOf": [
            _refer_to("Indexed"),
            _object(state={"enum": ["waiting", "working", "ready", "failed"]}, problem=_TEXT),
        ]
    },
    "Session": {"type": "object", "description": "The figures of `aver sessions`, as the index remembers them."},
    "Sessions": _object(
        sessions=_list(_refer_to("Session")), found=_COUNT, next=_or_null(_TEXT), indexed=_refer_to("Indexed")
    ),
    "Hit": _object(chain=_TEXT, sequence=_COUNT, at=_or_null(_TEXT), tool=_TEXT, call=_TEXT, kind=_TEXT, outcome=_TEXT),
    "Hits": _object(
        query={"type": "object"}, hits=_list(_refer_to("Hit")), next=_or_null(_TEXT), indexed=_refer_to("Indexed")
    ),
    "Counts": _object(
        by=_TEXT,
        counts=_list({"type": "object"}),
        undated=_or_null({"type": "object"}),
        held=_list({"type": "object"}),
        next=_or_null(_TEXT),
        indexed=_refer_to("Indexed"),
    ),
    "Key": _object(
        identity=_or_null(_TEXT),
        purpose=_or_null(_TEXT),
        epoch=_or_null(_COUNT),
        algorithm=_TEXT,
        fingerprint=_TEXT,
        public_key=_HEX64,
        public_key_pq=_TEXT,
        created_at=_or_null(_TEXT),
        retired_at=_or_null(_TEXT),
        status=_or_null(_TEXT),
        statement=_or_null({"type": "object"}),
        origin={"enum": ["ring", "published", "known"]},
    ),
    "Keys": _object(keys=_list(_refer_to("Key"))),
    "Chain": _object(name=_TEXT, count=_COUNT, head=_or_null(_TEXT), frozen=_FLAG, origin=_or_null(_TEXT)),
    "Chains": _object(
        moment=_MOMENT, total=_COUNT, records=_COUNT, chains=_list(_refer_to("Chain")), next=_or_null(_TEXT)
    ),
    "Location": _object(chain=_TEXT, sequence=_or_null(_COUNT), fragment=_or_null(_TEXT)),
    "Word": _object(chain=_TEXT, sequence=_COUNT, word=_TEXT, approver=_or_null(_TEXT)),
    "ApprovalRequest": _object(
        id=_TEXT,
        chain=_TEXT,
        sequence=_COUNT,
        state=_TEXT,
        reason=_TEXT,
        level=_COUNT,
        opened=_TEXT,
        expires=_TEXT,
        digest=_HEX64,
        words=_list(_refer_to("Word")),
    ),
    "ApprovalRequests": _object(requests=_list(_refer_to("ApprovalRequest")), next=_or_null(_TEXT)),
    "Answer": {
        **_object(statement={"type": "object"}, shown=_TEXT, comment={"type": "string", "maxLength": 2000}),
        "additionalProperties": False,
    },
    "Enrolment": {**_object(statement={"type": "object"}), "additionalProperties": False},
    "Enrolled": _object(identity=_TEXT, chain=_TEXT, sequence=_COUNT),
    "Answered": _object(id=_TEXT, state=_TEXT, reason=_TEXT, level=_COUNT, approvers=_list(_TEXT)),
}

_PARAMETERS: dict[str, Schema] = {
    "after": {"type": "string", "description": "The cursor `next` of the page before."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
    "start": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1, "default": 0},
    "stop": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
    "ref": {"type": "string", "minLength": 1, "maxLength": 512},
    "state": {"enum": ["pending", "approved", "denied", "expired", "closed", "used"]},
    "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Words, phrases and conditions."},
    "tool": _TEXT,
    "workspace": _TEXT,
    "since": {"type": "string", "description": "2026-05-31, 2026-05-31T09:00 or 2h"},
    "until": {"type": "string", "description": "as `since`"},
    "sort": {"enum": list(SORT_COLUMNS), "default": "latest"},
    "order": {"enum": ["descending", "ascending"], "default": "descending"},
    "by": {"enum": list(BUCKETS), "default": "day"},
    "name": _CHAIN_NAME,
    "sha256": _HEX64,
    "id": _ID,
}

_ERRORS = {
    400: "The request is wrong.",
    401: "The token is missing or wrong.",
    403: "The request comes from another web page, or the server only reads.",
    404: "Nothing of that name is here.",
    405: "The path has other methods.",
    409: "Aver understood the request and refuses it. The code says why.",
    413: "The body is too large.",
    421: "The name of the host is not one of this server.",
    429: "Too many requests or connections.",
    503: "The ledger cannot be read or written now.",
}
_ALWAYS = (400, 401, 403, 405, 413, 421, 429, 503)
"""The errors that every route may answer."""


def _route(
    summary: str,
    schema: str | None = None,
    *,
    media: str = "application/json",
    path: Iterable[str] = (),
    query: Iterable[str] = (),
    body: str | None = None,
    errors: Iterable[int] = (),
    required: Iterable[str] = (),
) -> Schema:
    """One method of one path."""
    content: Schema = {media: {"schema": _refer_to(schema)} if schema is not None else {}}
    answers: Schema = {"200": {"description": "Done.", "content": content}}
    problem = {"application/json": {"schema": _refer_to("Problem")}}
    for status in sorted({*_ALWAYS, *errors}):
        answers[str(status)] = {"description": _ERRORS[status], "content": problem}
    parameters = [
        *({"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]} for name in path),
        *({"name": name, "in": "query", "required": name in required, "schema": _PARAMETERS[name]} for name in query),
    ]
    found: Schema = {"summary": summary, "parameters": parameters, "responses": answers}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _refer_to(body)}}}
    return found


PATHS: dict[str, dict[str, Schema]] = {
    "about": {"get": _route("Versions, ledger, store, how to reach it, and digests of page and key list.", "About")},
    "keys": {"get": _route("Our own keys and the known ones. The link has SHA-256 of this answer.", "Keys")},
    "chains": {
        "get": _route(
            "The chains of one moment, unverified. 409: the moment is gone.",
            "Chains",
            query=("after", "limit"),
            errors=(409,),
        )
    },
    "chains/{name}/records": {
        "get": _route(
            "Records as stored, one on each line: at most 1,000 lines and 8 MiB. `Aver-Next` is where to go on.",
            media="application/x-ndjson",
            path=("name",),
            query=("start", "stop"),
            errors=(404,),
        )
    },
    "locate": {
        "get": _route(
            "Where a hash, id, key, URI, or the beginning of a chain or session is.",
            "Location",
            query=("ref",),
            required=("ref",),
            errors=(404,),
        )
    },
    "blobs/{sha256}": {
        "get": _route(
            "The bytes that are stored under a digest.",
            media="application/octet-stream",
            path=("sha256",),
            errors=(404,),
        )
    },
    "sessions": {
        "get": _route(
            "Sessions with figures, from the index.",
            "Sessions",
            query=("tool", "workspace", "since", "until", "query", "sort", "order", "after", "limit"),
        )
    },
    "search": {
        "get": _route(
            "Places where a query may hold, the newest first, from the index.",
            "Hits",
            query=("query", "after", "limit"),
            required=("query",),
        )
    },
    "counts": {
        "get": _route(
            "Activity, outcomes, denials, tokens and cost over time, from the index.",
            "Counts",
            query=("by", "since", "until", "after", "limit"),
        )
    },
    "approvals": {
        "get": _route(
            "Where requests for approval are, and the words about them; newest first, however old. An answer looks at "
            "500 of them: with `state` it may have fewer than `limit`, or none, before `next` is null.",
            "ApprovalRequests",
            query=("state", "after", "limit"),
        )
    },
    "approvals/{id}": {
        "post": _route(
            "Record a person's signed answer to a request.",
            "Answered",
            path=("id",),
            body="Answer",
            errors=(404, 409),
        )
    },
    "approvers": {
        "post": _route(
            "Enrol a passkey that an approver on the roster has endorsed.",
            "Enrolled",
            body="Enrolment",
            errors=(409,),
        )
    },
    "live": {"get": _route("Events `heads`, `approvals` and `index`, as they happen.", media="text/event-stream")},
    "openapi.json": {"get": _route("This description.")},
}
"""The routes by their paths below `/api/v1/`, and by method."""


def build_openapi() -> dict[str, Any]:
    """The description as a document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Aver Explorer", "version": __version__},
        "servers": [{"url": f"/api/v{API_VERSION}"}],
        "security": [{"token": []}],
        "paths": {f"/{path}": methods for path, methods in PATHS.items()},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
