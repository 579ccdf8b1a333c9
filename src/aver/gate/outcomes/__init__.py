"""What became of decisions: outcomes that people and tests report, clicks in the client, and calls that were observed."""
