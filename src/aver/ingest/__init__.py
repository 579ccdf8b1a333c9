"""Transcripts of coding agents become capsules.

contract       the adapter contract: find transcripts, read new records, parse them into events
draft          an event becomes the draft of a capsule
seal           events go into the ledger, each once
child_records  a second account of a sealed event becomes a child record
watch          transcripts are followed as they grow
reconcile      a sealed session is compared with its transcript and with git
"""
