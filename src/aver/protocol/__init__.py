"""Planner, executor, critic and auditor: signed events, guards, artifacts, the report."""
