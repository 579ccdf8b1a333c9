"""What coding agents tell and ask through their hooks, as it happens.

contract     what a hook's payload says, and the answer to it
running      one hook from its payload to its answer, whatever goes wrong on the way
asking       a tool call becomes the question that the gate is asked
failures     what could not be recorded is remembered, and sealed as soon as that works again
canary       a payload that tries a hook out and leaves no trace
claude_code, codex, cursor, cline    one tool each: its payloads and its answers
"""
