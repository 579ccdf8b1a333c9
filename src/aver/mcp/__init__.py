"""The MCP server of the CapSeal Agent Protocol: five tools by which an agent asks, records, seals and looks back.

It stands on the gate and on runs of actions: every gate call is a sealed decision, every record an action in the
ledger, every seal a run that anyone can verify. The protocol's own SDK is imported only where the server is run.
"""
