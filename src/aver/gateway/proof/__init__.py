"""The proof of an act: shares, attestations, patches, and the predicate that judges them. Pure."""
