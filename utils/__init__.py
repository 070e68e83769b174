"""The workbench's commands, one thin module each (`python -m utils.verification`), over the packages beside them."""
