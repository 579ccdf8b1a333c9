"""What an agent did: actions and their receipts, the runs they belong to, proofs about runs, and `.cap` files.

The receipts are those of the CapSeal Agent Protocol 0.4. Each action is also sealed as a capsule, so that receipts and
capsules vouch for each other: receipts inside capsules, the capsules' head inside the run's seal.
"""
