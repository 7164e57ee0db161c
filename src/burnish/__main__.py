"""`python -m burnish` is the command line."""

from burnish.cli import main

main()
