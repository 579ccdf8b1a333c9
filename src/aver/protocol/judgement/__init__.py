"""Traces judged afterwards: the auditor's report, its forms for people, the verdict."""
