"""Bundles: chains as a directory of JSON that anyone can verify, in the shape of the public agent-capsule tool."""

from aver.ledger.bundle.export import ExportResult, export_bundle
from aver.ledger.bundle.import_ import ImportedChain, ImportResult, import_bundle
from aver.ledger.foreign.import_databases import import_databases

__all__ = ["ExportResult", "ImportResult", "ImportedChain", "export_bundle", "import_bundle", "import_databases"]
