"""Mediation: an agent runs where the gateway's socket is the only way out, and probes show that it is.

contract           the capsule contract, and its variables
contract_clauses   what a contract demands: one clause for each of its words
contract_verdict   the verdict on a smoke report
syscall_filter     the system calls that a confined program does not get
enclosure          the arguments of `bwrap` for a contract
inner_program      the program that runs inside: it limits itself, then starts the agent or makes probes
smoke              the smoke report: probes from inside, each with a control outside
confined_door      the gateway's door for one confined agent
confined_run       an agent's run, from the first probe to its end
"""
