"""What a solution may do: the rules, and the evidence each rests on (docs/rules.md lists them)."""

from utils.rules.rule import RULES, Rule, Violation, split
from utils.rules.run import dispatch_violations, static_violations

__all__ = ["RULES", "Rule", "Violation", "dispatch_violations", "split", "static_violations"]
