from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.train.inherit import inherit


def test_rows_go_to_their_ids_and_new_ones_move_with_the_rest(
    make_drafter: Callable[..., Drafter],
) -> None:
    older, drafter = make_drafter(), make_drafter()
    target_head_VH = torch.randn(40, 12, dtype=torch.float64)
    with torch.no_grad():
        for parameter in older.parameters():
            parameter.add_(1.0)
        # the older one keeps the ids 0, 2, .., 30, the new one the ids 1, 2, .., 16
        shift_H = torch.linspace(-1, 1, 12, dtype=torch.float64)
        older.lm_head.weight.copy_(target_head_VH[:32:2] + shift_H)
        older.lm_head.weight[3] *= 2.0
        drafter.d2t.copy_(torch.ones(16, dtype=torch.int64))
    moved_H = (older.lm_head.weight - target_head_VH[:32:2]).mean(0)
    assert inherit(drafter, older, target_head_VH) == 8
    assert torch.equal(drafter.lm_head.weight[5], older.lm_head.weight[3])  # id 6
    torch.testing.assert_close(drafter.lm_head.weight[4], target_head_VH[5] + moved_H)
    for name, parameter in older.named_parameters():
        if name != "lm_head.weight":
            assert torch.equal(drafter.get_parameter(name), parameter), name


def test_another_form_is_refused(make_drafter: Callable[..., Drafter]) -> None:
    with pytest.raises(UsageError, match=r"another form: `layers\.1\."):
        inherit(make_drafter(), make_drafter(layers=2), torch.zeros(40, 12))
