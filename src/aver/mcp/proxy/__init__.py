"""The MCP proxy: stands between a client and one MCP server, and makes every call of a tool an act of the gateway.

    client  ◀── lines ──▶  relay  ◀── server_link ──▶  server
                             │
                        call_judge ──▶ Gateway.act ──▶ server_upstream ──▶ server_link

    messages         JSON-RPC messages: reading and writing them, and which methods pass
    relay            every message of either side, in its order, and which request waits for which answer
    call_judge       one call: PREVIEW, the wait for a person, COMMIT, and the answer to the client
    server_upstream  the request that the executor sends, and how it ends where no answer comes
    server_link      the server as a process; `http_link` has the same for a server at a URL
    tool_book        definitions of tools: those first seen, and those of now
    run              puts all of it together for `aver proxy`

No module but `http_link` imports the MCP SDK: its import takes a second, and every server of a client would pay for it.
"""
