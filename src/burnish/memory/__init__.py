"""What remembers between steps: controllers, ledgers, replay. Every memory is saved and restored with the run."""
