"""From the text of a command to its syntax tree, checked against a second parser."""
