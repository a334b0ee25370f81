"""Whether the numbers of a matrix are those that its construction drew."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyas.checks.values import TensorValues

USUAL_STD = 0.02  # initializer_range of transformers' configs, where a drafter's states none
SMALLEST = 2**16  # numbers: with fewer, trained matrices have such moments by chance
ERRORS = 4.0  # standard errors: three tests miss one fresh matrix in some five thousand
ROUNDING = 2**-8  # by how much bfloat16 may enlarge the bound of a uniform distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A symmetric distribution: its kurtosis, and the variance of a sample's, times its size.

    The latter is b8 + 4 b4**3 - b4**2 - 4 b4 b6, by the delta method from the standardised moments
    b4, b6 and b8.
    """

    kurtosis: float
    spread: float

    def fits(self, values: TensorValues, std: float) -> bool:
        """Whether `values` may be drawn from this shape, with mean 0 and deviation `std`."""
        root = sqrt(values.elements)
        off = (
            values.mean / std,
            (values.std / std - 1) / (sqrt(self.kurtosis - 1) / 2),
            (values.kurtosis - self.kurtosis) / sqrt(self.spread),
        )
        return all(abs(error) * root <= ERRORS for error in off)


NORMAL = Shape(kurtosis=3.0, spread=24.0)  # b6 15, b8 105
UNIFORM = Shape(kurtosis=1.8, spread=1.3166)  # b6 27/7, b8 9


def construction(values: TensorValues, stated_std: float | None) -> str | None:
    """How the matrix of `values` was probably drawn; None where it was trained or is too small.

    `stated_std` is the config's initializer_range.
    """
    if len(values.shape) != 2 or values.not_finite or values.elements < SMALLEST:
        return None
    for std in (stated_std or USUAL_STD, 1.0):
        if NORMAL.fits(values, std):
            return f"normal with std {std:g}"
    bound = 1 / sqrt(values.shape[1])
    inside = values.largest <= bound * (1 + ROUNDING)
    if inside and UNIFORM.fits(values, bound / sqrt(3)):
        return f"uniform within {bound:.3g}"
    return None
