"""Judging acts afterwards: the examiners of their records, and the file of one act that anyone can verify."""
