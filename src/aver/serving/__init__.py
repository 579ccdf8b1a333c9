"""Serving: loopback HTTP and Unix sockets for every server that Aver runs, and a client for them.

    tokens       the token file of a server, and the token of a request
    guard        the rules for the headers of a request, alone and as an ASGI wrapper
    sockets      addresses, and sockets that listen at them
    peers        who is calling: user id, token, name
    wire         HTTP/1.1 on one connection, within limits of time and size
    part_server  a server of JSON routes: the parts of the gateway
    part_client  its client

`wire`, `part_server` and `part_client` need h11, which the core install has. The others need the standard library only.
"""
