"""Where capsules live: append, read, heads, blobs, bundles. The face for asyncio is `aver.ledger.async_ledger`."""

from aver.ledger.head import Head
from aver.ledger.ledger import Ledger, list_tenants, open_ledger

__all__ = ["Head", "Ledger", "list_tenants", "open_ledger"]
