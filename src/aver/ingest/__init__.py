"""What coding agents did, from their own transcripts and hooks, sealed as it happens.

contract     what an adapter is: where transcripts are, how new records are read, what they say
event         one thing that an agent did, whatever the tool
drafting     an event becomes the draft of a capsule: one mapping for all tools
sealing      events go into the ledger, each once
sessions     what was done in each session, in numbers; telling, rulings: what its capsules and the gate's say
story, page  one session in the order in which it happened, and as a page
"""
