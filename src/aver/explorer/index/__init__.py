"""The derived index of the Explorer: full text and figures of a ledger, in `AVER_HOME/index.db`.

    index = LedgerIndex.in_home(ledger.config.home)
    index.catch_up(ledger)
    page = index.search(ledger, 'tool:Bash outcome:failure "permission denied"')

- `database`     the file: its tables, its version, its faults
- `texts`        the texts of a record that can be searched
- `query`        the language of a search
- `excerpt`      a few words around a hit, cut from its record
- `cursor`       opaque cursors
- `catch_up`     reads new records of a ledger into the file
- `answers`      searches, lists of sessions and figures over time
- `ledger_index` the class that joins them

Nobody has to trust the index. It holds copies of what records say, for speed. A hit is a place in the ledger, and its
reader reads and verifies the record there. The file may be deleted at any time. It is separate for each ledger, each
tenant and each store, so no answer mixes two of them.
"""

from __future__ import annotations

from aver.explorer.index.answers import CountsPage, Hit, SearchPage, SessionsPage
from aver.explorer.index.database import INDEX_NAME, IndexUnavailable
from aver.explorer.index.excerpt import Excerpt, cut_excerpt
from aver.explorer.index.ledger_index import LedgerIndex
from aver.explorer.index.progress import IndexProgress
from aver.explorer.index.query import SearchQuery, parse_query
from aver.explorer.index.texts import read_texts

__all__ = [
    "INDEX_NAME",
    "CountsPage",
    "Excerpt",
    "Hit",
    "IndexProgress",
    "IndexUnavailable",
    "LedgerIndex",
    "SearchPage",
    "SearchQuery",
    "SessionsPage",
    "cut_excerpt",
    "parse_query",
    "read_texts",
]
