"""The gateway's parts as processes of their own, and the doors to it.

entrance          opens the gateway as this home has it: in one process, or apart
remote_parts      the gateway's side of parts that run apart
part_directories  a directory for each part, with exactly the keys that it needs
pinned_program    the rules and settings that the parts decide by, and what has changed since they were pinned
part_services     the servers of a policy server and of the executor
http_door         `POST /act`
supervisor        all parts as child processes
"""
