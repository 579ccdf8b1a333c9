"""What coding agents did, from their own transcripts and hooks, sealed as it happens.

contract     what an adapter is: where transcripts are, how new records are read, what they say
deed         one thing that an agent did, whatever the tool
drafting     a deed becomes the draft of a capsule: one mapping for all tools
sealing      deeds go into the ledger, each once
sessions     what was done in each session, in numbers; telling, rulings: what its capsules and the gate's say
story, page  one session in the order in which it happened, and as a page
"""
