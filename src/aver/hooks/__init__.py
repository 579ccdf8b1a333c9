"""The engine behind `aver hook`: what coding agents report and ask through their hooks, as it happens.

contract    what a payload says, and the answer to it: each agent describes its hooks by this
settings    what the user has chosen, and the answer to a decision of the gate
run         one hook from its payload to its answer; failures are remembered, and sealed as soon as that works again
action      a tool call becomes the action that the gate judges
selftest    a payload that tries a hook out and leaves no trace
"""
