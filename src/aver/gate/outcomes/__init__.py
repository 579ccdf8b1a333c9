"""The outcomes of decisions: reported ones, clicks in the client, and calls that were only observed."""
