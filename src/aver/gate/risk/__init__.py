"""How likely is it to go wrong: a small model that learns a workspace's level and never denies by itself.

sources    which files are source code, and what a comment looks like in them
diff       a change, as a stream of files and hunks
features   the five inputs of the model
model      probability, interval and the moving intercept
kinds      actions that are not changes: commands, network, deletion, tools, reads
estimate   an action and its facts become one `Estimate`
state      what was learned of a workspace, as a file
repository, history, fixes, labels    a git history, read without running anything of it
learn, report    learning from it, and saying how well that works
"""
