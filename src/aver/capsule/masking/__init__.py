"""Masking: secrets are replaced before a record is sealed."""
