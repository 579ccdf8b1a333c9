"""Put Aver into the settings of other programs, and take it out again, without harming what is there.

client         what the engine must know of a program: the places of its settings
mcp_server     the MCP server, as an entry in those settings
hooks          the hooks, as items in those settings
settings_file  one entry or item in one file
edit           the text of a settings file, whatever its format; json_spans and toml_edit for one format each
file_edit      the file itself: replaced at once, as its owner, never over a change of someone else
undo           remembers what Aver made
commands       the command that starts this Aver
vscode         VS Code, which is a client and no coding agent

The engine knows no coding agent: `agents/<name>/install.py` describes each as a `Client`.
"""
