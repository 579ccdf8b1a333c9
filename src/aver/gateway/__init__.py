"""The gateway: an agent asks for an act, two policy servers decide about it, and one executor carries it out.

    gateway        `act`: PREVIEW and COMMIT
    acts/          an act on its way: who asks, what is shown, the PREVIEW, the evidence, the answer
    policy_server  decides about a request; `policy_panel` asks two of them
    executor/      checks the proof of an act, and causes its effect once
    effects/       the effects, one module for each sort
    parts/         policy servers, executor and doors as processes of their own
    mediation/     an agent that is confined to the gateway, and the verdict on that
    judgement/     the verdict on acts, afterwards

These modules are pure. They open no file but those of the package, no socket and no process, and read no clock:

    codes        reason codes, and the envelope of every answer
    intents      what an agent can ask for, and the inputs that are bound
    request      the act as it was sent, and the request that everything later refers to
    specs        the machine-checkable files of the RFC
    delegation   tokens by which a principal lets a caller act for it
    ingress      signed calls of a principal on another machine
    proof/evidence     the shares of the policy servers
    proof/attestation  each server's signed word about its own decision
    proof/patch        the change that a rule wants before a request goes out
    proof/predicate    the accept predicate: may this COMMIT be carried out?
    proof/evidence_report   the report of `aver gateway verify-evidence`
    mediation/contract          the capsule contract, and its variables
    mediation/contract_clauses  what a contract demands
    mediation/contract_verdict  the verdict on a smoke report
    mediation/syscall_filter    the filter of a confined agent's system calls
"""
