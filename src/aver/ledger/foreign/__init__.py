"""Records from elsewhere: other tools' databases and loose capsule files, read-only."""
