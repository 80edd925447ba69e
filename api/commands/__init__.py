"""The subcommands of `isoform`, one file each."""
