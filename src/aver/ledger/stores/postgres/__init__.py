"""The ledger on a PostgreSQL server. Needs psycopg: `pip install 'aver-ledger[postgres]'`."""

from aver.ledger.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
