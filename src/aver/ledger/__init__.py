"""Where capsules live: append, read, heads, blobs, verification. For asyncio see `aver.ledger.async_ledger`.

ledger.py            the API: `Ledger`, `open_ledger`
read_only.py         a bundle or `.cap` file, opened to read: `ReadOnlyLedger`
append.py            entries, sealing, inserting
keys_chain.py        the chain `keys`: our keys and until where they are valid
meta_chain.py        the chain `meta`: the heads of all chains
seen_heads.py, verified_heads.py, checkpoint.py, checkpoint_files.py
                     remembered heads, which show cut and rolled-back chains
lookup.py            the chain or record that a typed name means
stores/              the databases: SQLite and PostgreSQL; group commit
bundle/              directories of JSON to send to a verifier
foreign/             other tools' files and databases
"""

from aver.ledger.append import Entry
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger, list_tenants, open_configured_ledger, open_ledger

__all__ = ["Entry", "Head", "Ledger", "list_tenants", "open_configured_ledger", "open_ledger"]
