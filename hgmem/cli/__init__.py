"""The command line: Typer commands over the client, nothing else."""
