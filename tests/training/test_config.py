"""Settings that cannot be."""

from __future__ import annotations

import pytest

from ptedge.config import load_config
from ptedge.errors import ConfigError
from ptedge.training.config import AdaptConfig


@pytest.mark.parametrize(
    "override",
    [
        "seed=-1",
        "optim.lr=0",
        "optim.schedule=step",
        "augment.zoom=[0.9, 0.5]",
        "augment.brightness=-0.5",
        "pseudo.tau_cls=0",
        "pseudo.focal_cls=-1",
        "sampling.rpn_count=0",
        "sampling.roi_positive=1.5",
        "target.box_scale=-1",
        "teacher.ema=1.5",
        "lambda_target=-1",
        "workers=-2",
        "precision=fp8",
        "optim.accumulate=0",
        "optim.lr_scaling=sqrt",
    ],
)
def test_adapt_config__refuses(override: str) -> None:
    with pytest.raises(ConfigError):
        load_config(AdaptConfig, None, [override])
