"""What known programs do: specifications as tables, verbs and handlers."""
