"""Who speaks in a trace: functions, commands, and the built-in roles."""
