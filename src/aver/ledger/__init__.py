"""Where capsules live: append, read, heads, blobs, bundles."""

from aver.ledger.aio import AsyncLedger, open_ledger_async
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger, open_ledger, tenants_of

__all__ = ["AsyncLedger", "Head", "Ledger", "open_ledger", "open_ledger_async", "tenants_of"]
