"""What an action would do: its effect classes and the paths and hosts it touches. Imports nothing by itself."""
