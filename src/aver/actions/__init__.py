"""Record what an agent did: actions and their receipts, runs, proofs about runs, and `.cap` files.

The receipts follow the CapSeal Agent Protocol 0.4. Aver also seals each action as a capsule. The two confirm each
other: a capsule contains the receipt of its action, and the seal of the run contains the head of the capsule chain.
"""
