"""What a person or a program is shown: outcomes and exit codes, tables, JSON records."""
