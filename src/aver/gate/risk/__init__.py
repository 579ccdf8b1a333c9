"""The risk model: how likely an action is to fail. It learns the level of a workspace, and never denies by itself.

diff, diff_model    a unified diff as a stream of files and hunks
features            the five inputs of the model, and the kinds of files they are measured on
model               probability, interval and the moving level; also for actions that are not changes
estimate            an action and its facts become one `Estimate`
state               the learned state of a workspace, as a file
history             learning from a git history, without running anything that the repository names
report              how well the model does on such a history
"""
