"""The subcommands, one module each (`corrections` has two), imported when called."""
