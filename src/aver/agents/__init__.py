"""Everything that Aver knows about one coding agent: a folder each, and the registry that lists them."""
