"""The gateway: an agent asks for an act, two policy servers decide about it, and one executor carries it out.

These modules are pure. They open no file but those of the package, no socket and no process, and read no clock:

    codes        reason codes, and the envelope of every answer
    intents      what an agent can ask for, and the inputs that are bound
    request      the act as it was sent, and the request that everything later refers to
    evidence     the shares of the policy servers
    attestation  each server's signed word about its own decision
    patch        the change that a rule wants before a request goes out
    predicate    the accept predicate: may this COMMIT be carried out?
    specs        the machine-checkable files of the RFC
    evidence_report   the report of `aver gateway verify-evidence`
    delegation   tokens by which a principal lets a caller act for it
    ingress      signed calls of a principal on another machine
"""
