"""VS Code: no agent, but it starts MCP servers for the agents that run in it. Aver knows its settings only."""
