"""Bundles: chains as a directory of JSON that anyone can verify, in the format of the public agent-capsule tool."""

from aver.ledger.bundle.export import ExportResult, export_bundle
from aver.ledger.bundle.import_ import ImportedChain, ImportResult, import_bundle

__all__ = ["ExportResult", "ImportResult", "ImportedChain", "export_bundle", "import_bundle"]
