"""The named checks of `python -m utils.check`, on problem files and on solutions."""

from utils.problem.checks.finding import Finding
from utils.problem.checks.problem_file import check_problem

__all__ = ["Finding", "check_problem"]
