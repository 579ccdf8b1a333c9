"""Recording made easy: audited functions, requests and log records, on one basis.

`decorator` is `@aver.audit`, `call` what `aver.current()` gives, `scope` what is carried from call to call, `asgi` and
`logs` the same for web applications and `logging`. Under them: `render` (any value as JSON), `drafts` (the records),
`run` (one call from intent to outcome), `recorder` (sealing, and what becomes of what could not be sealed), `process`
(what there is once).
"""
