"""Write a drafter so that an engine's view of it equals the trained one, or refuse."""

from eyas.convert.conversion import ConversionResult, convert
from eyas.convert.goal import DialectGoal, Goal, parse_goal
from eyas.convert.plan import Plan, PlannedTensor
from eyas.convert.planning import plan
from eyas.convert.repair import repair_of
from eyas.convert.share import Share
from eyas.convert.wishes import NO_WISHES, Wishes

__all__ = [
    "NO_WISHES",
    "ConversionResult",
    "DialectGoal",
    "Goal",
    "Plan",
    "PlannedTensor",
    "Share",
    "Wishes",
    "convert",
    "parse_goal",
    "plan",
    "repair_of",
]
