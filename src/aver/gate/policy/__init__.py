"""Policy: Cedar rules that say what may happen, what a human must approve, and what is refused.

bundle, rules, engine    reading rules, checking them, and Cedar itself
query                    the question about an action, and the answer of the rules
explain, lint, cases     why an answer came, doubtful rules, and unit tests of policies
starter_files, starter   the rules that Aver ships
"""
