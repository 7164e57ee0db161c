"""The run: from a resolved request to a folder that holds everything."""
