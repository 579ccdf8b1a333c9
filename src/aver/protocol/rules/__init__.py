"""The rules of single events: for each event a function that judges it in a trace. Pure; only the fold calls them."""
