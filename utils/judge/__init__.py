"""The judge: decides whether a solution computes the same function as Model, and trusts nothing the solution says.

    verification.py (the command) -> trials -> session -> [protocol over a socket pair] -> runner -> the solution
                                       |                                                    |
                                   reference, checks, verdict                     arena memory shared by both

Trusted, in the judge's process: session, staging, reference, trials, checks, verdict, report. Trusted, before any of
the solution's code runs: bootstrap. Untrusted, in the solution's process: runner. docs/threat-model.md says who is
trusted with what.
"""
