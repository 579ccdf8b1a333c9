"""The `aver` command. `aver.cli.main` is its entry point; `aver.cli.verbs` has one module or folder for each verb."""
