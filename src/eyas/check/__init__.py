"""Compare a drafter as trained with the drafter as served, and explain each difference."""

from eyas.check.compare import as_trained, check, compare_view, report_on, subject_of
from eyas.check.explain import explain, rule_of
from eyas.check.finding import Finding, Severity, Skip
from eyas.check.fit import open_fitting, require_fit
from eyas.check.report import (
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
from eyas.check.rules import NO_TARGET, RULES, Rule, TrainedRule, ViewRule
from eyas.check.selection import EVERY_RULE, Selection
from eyas.check.view import Trained, View

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
