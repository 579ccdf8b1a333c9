"""Recording: audited functions, requests and log records.

    decorator         `@aver.audit`, with `wrappers` for each form of a function
    call              the object that `aver.current()` returns
    scope             values that pass from a call to the calls inside it
    asgi              a middleware that audits requests
    logging_handler   a `logging` handler that seals log records

They share `render` (any value as JSON), `drafts` (the records), `run` (one call from intent to outcome), `recorder`
(sealing, and notes of records that were lost) and `process` (objects that exist once in a process).
"""
