"""The commands, one module for each, and the options that several of them take."""
