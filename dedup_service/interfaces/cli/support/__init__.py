"""Parts that several subcommands share."""
