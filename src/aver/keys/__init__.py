"""Keys: the key ring, the key store, signers and signed statements. Importing it loads no cryptography."""

from aver.keys.algorithms import fingerprint, verify_ed25519, verify_ml_dsa_65
from aver.keys.exchange import build_key_export, load_seed_signer, read_keys, read_public_keys
from aver.keys.public_key import LEDGER, PURPOSES, KeyRole, PublicKey, check_identity, default_purpose
from aver.keys.ring import KeyLike, Ring, RingEntry, check_rotation
from aver.keys.signers import SeedSigner, StoreSigner
from aver.keys.statement import (
    SignatureResult,
    Statement,
    StatementSignature,
    StatementSigner,
    check_statement,
    decode_statement,
    dump_statement,
    encode_statement,
    read_statement_file,
    sign_statement,
    statement_bytes,
)
from aver.keys.store import ImportedKeys, KeyStore, Rotation

__all__ = [
    "LEDGER",
    "PURPOSES",
    "ImportedKeys",
    "KeyLike",
    "KeyRole",
    "KeyStore",
    "PublicKey",
    "Ring",
    "RingEntry",
    "Rotation",
    "SeedSigner",
    "SignatureResult",
    "Statement",
    "StatementSignature",
    "StatementSigner",
    "StoreSigner",
    "build_key_export",
    "check_identity",
    "check_rotation",
    "check_statement",
    "decode_statement",
    "default_purpose",
    "dump_statement",
    "encode_statement",
    "fingerprint",
    "load_seed_signer",
    "read_keys",
    "read_public_keys",
    "read_statement_file",
    "sign_statement",
    "statement_bytes",
    "verify_ed25519",
    "verify_ml_dsa_65",
]
