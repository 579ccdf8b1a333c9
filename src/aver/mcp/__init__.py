"""The MCP server of the CapSeal Agent Protocol: five tools with which an agent asks, records, seals and looks back.

The server uses the gate and the runs of `aver.actions`. Each gate call gives a sealed decision, each record an action
in the ledger, and each seal a run that anyone can verify. Aver imports the MCP SDK only when it runs the server.
"""
