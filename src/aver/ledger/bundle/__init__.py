"""Bundles: chains as a directory of JSON that anyone can verify, in the shape of the public agent-capsule tool."""

from aver.ledger.bundle.databases import import_databases
from aver.ledger.bundle.export import Exported, export_bundle
from aver.ledger.bundle.importing import Imported, ImportedChain, import_bundle

__all__ = ["Exported", "Imported", "ImportedChain", "export_bundle", "import_bundle", "import_databases"]
