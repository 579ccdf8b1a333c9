"""The Explorer: a page that shows records and verifies them in a browser.

`page/` has the page as it was built from `web/`; nothing here needs Node.js. `page/verify.mjs` is the same verifier as
a command for Node.js. `aver.ledger.bundle.site` puts the page into a bundle.
"""
