"""The multi-agent protocol: who proposed, approved, ran and claimed what, on which evidence.

    events      the 19 events: their table, their schemas, how one becomes a capsule and is read back
    statements  what participants sign: joins, contributions from elsewhere, reports
    standings   where participants, proposals, intents, claims and challenges stand
    trace       the fold: which event may come next, and the state after it
    bounds      the limits of a trace, and the settings `[protocol]`
    runner      what the session needs of a runner of tools, and how the value of a call becomes an artifact
    session     a trace in a ledger: saying, resuming, verifying
    contributions    events that are signed elsewhere, and sealed by the operator
    handles     one handle for each role

`events`, `statements`, `standings`, `trace` and `bounds` open no file (but the schemas) and ask no clock.
"""
