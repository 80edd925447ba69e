"""The proof kernel: the only code that can call something proved."""
