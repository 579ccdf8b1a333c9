"""`aver approvals`."""
