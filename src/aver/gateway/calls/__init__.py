"""Calls of tools through the gateway: the servers that carry them out, and what a call means.

upstream         a server of tools: an MCP server behind the proxy, or functions of this process
call_meaning     the judgement of a call or an answer by what the user said (`aver.gate.origins`)
session_origins  what the user said in a session, and the values that the session has read
"""
