"""Where capsules live: append, read, heads, blobs, bundles. The face for asyncio is `aver.ledger.aio`."""

from aver.ledger.head import Head
from aver.ledger.ledger import Ledger, open_ledger, tenants_of

__all__ = ["Head", "Ledger", "open_ledger", "tenants_of"]
