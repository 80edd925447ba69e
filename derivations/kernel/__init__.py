"""The proof kernel: the only code that can call something proved; docs/kernel.md says how it is built and attacked."""
