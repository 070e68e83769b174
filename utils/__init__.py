"""The workbench's commands, one thin module each (`python -m utils.verification`), over the packages beside them."""

import sys

if sys.argv[0] == "-m":  # a command is being started; it may find itself under a Python without what it needs
    from utils.present import missing

    missing.watch()
