"""`python -m korvet_fast`: the command line."""

from korvet_fast.cli import main

main()
