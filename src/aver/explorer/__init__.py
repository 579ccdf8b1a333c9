"""The Explorer: a page that shows records and verifies them in a browser, and the server that opens it on a ledger.

    server          where `aver serve` listens, its link, and its life
    connection      one HTTP connection, within limits of number and time
    guard           which requests the application sees at all
    api             the routes below `/api/v1/`; `openapi` describes them
    answers         the headers of every answer, and the one form of errors
    ledger_reads    records, blobs, places and keys, as stored
    moments, live   the state of all chains, and the stream that tells its changes
    approval_places requests for approval, answers and passkeys
    index           the derived index; `index_keeper` keeps it near the ledger
    page_files      the files of the page

`page/` has the page as it was built from `web/`; nothing here needs Node.js. `page/verify.mjs` is the same verifier as
a command for Node.js. `aver.ledger.bundle.site` puts the page into a bundle. The server needs the extra `explorer`.
"""
