"""Compare a drafter as trained with the drafter as served, and explain each difference."""

from eyas.checks.compare import as_trained, check, compare_view, report_on, subject_of
from eyas.checks.explain import explain, rule_of
from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.fit import open_fitting, require_fit
from eyas.checks.report import (
    SCHEMA_VERSION,
    CheckedFile,
    Coverage,
    EngineOutcome,
    ErrorDocument,
    ErrorText,
    Outcome,
    Report,
    Subject,
    Tool,
)
from eyas.checks.rules import NO_TARGET, RULES, Rule, TrainedRule, ViewRule
from eyas.checks.selection import EVERY_RULE, Selection
from eyas.checks.view import Repair, Trained, View

__all__ = [
    "EVERY_RULE",
    "NO_TARGET",
    "RULES",
    "SCHEMA_VERSION",
    "CheckedFile",
    "Coverage",
    "EngineOutcome",
    "ErrorDocument",
    "ErrorText",
    "Finding",
    "Outcome",
    "Repair",
    "Report",
    "Rule",
    "Selection",
    "Severity",
    "Skip",
    "Subject",
    "Tool",
    "Trained",
    "TrainedRule",
    "View",
    "ViewRule",
    "as_trained",
    "check",
    "compare_view",
    "explain",
    "open_fitting",
    "report_on",
    "require_fit",
    "rule_of",
    "subject_of",
]
