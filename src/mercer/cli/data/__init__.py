"""Reading data for the commands: where it is, its format, its columns and targets."""
