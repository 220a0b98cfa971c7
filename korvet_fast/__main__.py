"""`korvet-fast` and `python -m korvet_fast`: the command line."""

import signal

# Ctrl-C ends a command that is still being imported as it ends any program: `main` lets it raise again.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from korvet_fast.cli import main

if __name__ == "__main__":
    main()
