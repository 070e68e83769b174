"""Workspaces, problem files and the layouts a solution may have."""
