"""What every part runs on: threads, memory, progress and safe writing."""
