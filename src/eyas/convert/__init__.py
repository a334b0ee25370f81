"""Write a drafter so that an engine's view of it equals the trained one, or refuse."""

from eyas.convert.conversion import ConversionResult, convert
from eyas.convert.plan import Plan, Rename, plan
from eyas.convert.repair import repair_of

__all__ = ["ConversionResult", "Plan", "Rename", "convert", "plan", "repair_of"]
