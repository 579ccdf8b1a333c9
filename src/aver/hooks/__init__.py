"""The engine behind `aver hook`: what coding agents report and ask through their hooks, as it happens.

contract    what a payload says, and the answer to it: each agent describes its hooks by this
run         one hook from its payload to its answer, also where something fails
action      a tool call becomes the action that the gate judges
failures    remembers failures of hooks, and seals them as soon as that works again
selftest    a payload that tries a hook out and leaves no trace
"""
