"""The tools that an executor runs: commands, files, functions, MCP tools and acts of a gateway."""
