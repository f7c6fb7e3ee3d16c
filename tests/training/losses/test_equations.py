"""Each equation of Probabilistic Teacher against values worked out by hand, integrals and finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Normal

from ptedge.training.losses.equations import (
    MAX_BOX_ENTROPY,
    beta_weight,
    box_focal_weight,
    class_focal_weight,
    gaussian_cross_entropy,
    gaussian_nll,
    mean_over,
    objectness_cross_entropy,
    own_count,
    sharpen_classes,
    smooth_l1,
    soft_cross_entropy,
)

numbers = st.floats(-3, 3)
variances = st.floats(1e-3, 1)


def _t(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(mean=numbers, variance=variances, target=numbers)
def test_gaussian_nll__is_the_log_density(mean: float, variance: float, target: float) -> None:
    expected = -Normal(_t(mean), _t(variance).sqrt()).log_prob(_t(target))
    torch.testing.assert_close(gaussian_nll(_t(mean), _t(variance), _t(target)), expected)


def test_gaussian_nll__by_hand() -> None:
    # half of log(2 pi), log 1/4 and (2 - 1)^2 / (1/4)
    expected = 0.5 * (math.log(2 * math.pi) - math.log(4.0) + 4.0)
    torch.testing.assert_close(gaussian_nll(_t(1.0), _t(0.25), _t(2.0)), _t(expected))


def test_gaussian_nll__smallest_at_the_true_variance() -> None:
    generator = torch.Generator().manual_seed(0)
    errors = 0.1 * torch.randn(4000, generator=generator, dtype=torch.float64)
    errors *= 0.1 / errors.pow(2).mean().sqrt()  # mean square exactly 0.01
    grid = torch.linspace(0.002, 0.1, 981, dtype=torch.float64)  # 0.0001 apart
    losses = gaussian_nll(_t(0.0), grid.unsqueeze(1), errors).mean(dim=1)
    assert float(grid[losses.argmin()]) == pytest.approx(0.01, abs=1e-4)
    # with 0.3 added inside the normaliser, 1/2 log(2 pi s2 + 0.3), the minimum lies at 0.245^2: that is not ours
    biased = 0.5 * (torch.log(2 * math.pi * grid + 0.3) + 0.01 / grid)
    assert float(grid[biased.argmin()].sqrt()) > 0.15


@pytest.mark.parametrize(
    ("p_mean", "p_variance", "q_mean", "q_variance"),
    [(0.0, 1.0, 0.0, 1.0), (0.5, 0.2, -0.3, 0.6), (-1.0, 0.01, -1.1, 0.04), (2.0, 0.9, 0.0, 0.3)],
)
def test_gaussian_cross_entropy__against_integration(
    p_mean: float, p_variance: float, q_mean: float, q_variance: float
) -> None:
    x = torch.linspace(p_mean - 12, p_mean + 12, 200_001, dtype=torch.float64)
    p, q = Normal(_t(p_mean), _t(p_variance).sqrt()), Normal(_t(q_mean), _t(q_variance).sqrt())
    integral = torch.trapezoid(-p.log_prob(x).exp() * q.log_prob(x), x)
    ours = gaussian_cross_entropy(_t(p_mean), _t(p_variance), _t(q_mean), _t(q_variance))
    torch.testing.assert_close(ours[0], integral, rtol=1e-8, atol=1e-8)


@given(p_mean=numbers, p_variance=variances, q_mean=numbers, q_variance=variances)
def test_gaussian_cross_entropy__smallest_where_student_equals_teacher(
    p_mean: float, p_variance: float, q_mean: float, q_variance: float
) -> None:
    p = _t(p_mean), _t(p_variance)
    here = gaussian_cross_entropy(*p, _t(q_mean), _t(q_variance))
    best = gaussian_cross_entropy(*p, *p)
    assert float(best) <= float(here) + 1e-9
    torch.testing.assert_close(best, Normal(p[0], p[1].sqrt()).entropy())


def test_gaussian_cross_entropy__zero_gradient_at_the_teacher() -> None:
    mean, variance = _t(0.7).requires_grad_(), _t(0.3).requires_grad_()
    gaussian_cross_entropy(_t(0.7), _t(0.3), mean, variance).sum().backward()
    torch.testing.assert_close(mean.grad, _t(0.0))
    torch.testing.assert_close(variance.grad, _t(0.0))


def test_gaussian_cross_entropy__teacher_without_variance_is_the_likelihood() -> None:
    args = _t(0.4), _t(-0.2), _t(0.3)
    torch.testing.assert_close(
        gaussian_cross_entropy(args[0], _t(0.0), args[1], args[2]), gaussian_nll(args[1], args[2], args[0])
    )


def test_soft_cross_entropy__by_hand() -> None:
    logits = torch.tensor([[math.log(2.0), 0.0, 0.0]])  # softmax 1/2, 1/4, 1/4
    p = torch.tensor([[0.5, 0.5, 0.0]])
    torch.testing.assert_close(soft_cross_entropy(p, logits), torch.tensor([0.5 * math.log(2) + 0.5 * math.log(4)]))


def test_soft_cross_entropy__one_hot_is_cross_entropy() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 2, 1, 3])
    p = torch.nn.functional.one_hot(labels, 4).float()
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(soft_cross_entropy(p, logits), expected)


def test_objectness_cross_entropy__by_hand() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2]])  # foreground 0.8, background 0.2
    z = torch.tensor([math.log(3.0)])  # sigmoid 3/4
    expected = -(0.8 * math.log(0.75) + 0.2 * math.log(0.25))
    torch.testing.assert_close(objectness_cross_entropy(p, z), torch.tensor([expected]))


def test_objectness_cross_entropy__the_two_masses_sum_to_one() -> None:
    z = _t(-4.0, -0.5, 0.0, 2.0)
    certain = objectness_cross_entropy(_t(1.0, 0.0).expand(4, 2), z)  # -log of the foreground mass
    nothing = objectness_cross_entropy(_t(0.0, 1.0).expand(4, 2), z)  # -log of the background mass
    torch.testing.assert_close((-certain).exp() + (-nothing).exp(), torch.ones(4, dtype=torch.float64))


def test_sharpen_classes__acts_on_logits() -> None:
    p = torch.tensor([[0.6, 0.3, 0.1]])
    # tau 1/2 squares the probabilities: 0.36, 0.09, 0.01 over 0.46
    torch.testing.assert_close(sharpen_classes(p.log(), 0.5), torch.tensor([[36 / 46, 9 / 46, 1 / 46]]))
    torch.testing.assert_close(sharpen_classes(p.log(), 1.0), p)


def test_class_focal_weight__by_hand() -> None:
    p = torch.tensor([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    # entropies log 4, 0 and log 2, over log 4: 1, 0 and 1/2
    torch.testing.assert_close(class_focal_weight(p, 1.0), torch.tensor([0.0, 1.0, 0.5]), rtol=0, atol=1e-6)
    torch.testing.assert_close(class_focal_weight(p, 0.5)[1:], torch.tensor([1.0, math.sqrt(0.5)]))
    torch.testing.assert_close(class_focal_weight(p, 0.0), torch.ones(3))


def test_focal_weights__switched_off_have_the_type_and_place_of_what_they_weigh() -> None:
    p = torch.full((3, 2), 0.5, dtype=torch.float64)
    assert class_focal_weight(p, 0.0).dtype == box_focal_weight(p, 0.0).dtype == torch.float64
    elsewhere = torch.empty(3, 2, device="meta")
    assert class_focal_weight(elsewhere, 0.0).device == box_focal_weight(elsewhere, 0.0).device == elsewhere.device


def test_class_focal_weight__no_gradient_even_at_probability_zero() -> None:
    logits = torch.tensor([[300.0, -300.0, 0.0]], requires_grad=True)
    p = logits.softmax(dim=-1)
    assert p[0, 1] == 0
    weight = class_focal_weight(p, 0.5)
    assert not weight.requires_grad and torch.isfinite(weight).all()
    (weight * soft_cross_entropy(p.detach(), logits)).sum().backward()
    assert logits.grad is not None and torch.isfinite(logits.grad).all()


def test_box_focal_weight__by_hand() -> None:
    # E / E_norm = 1 + log(s2) / log(2 pi e), so the weight before the power is -log(s2) / 2.8379
    variance = torch.tensor([1.0, 1 / (2 * math.pi * math.e), 0.001, 0.5])
    expected = torch.tensor([0.0, 1.0, math.log(1000.0) / 2.837877, math.log(2.0) / 2.837877])
    torch.testing.assert_close(box_focal_weight(variance, 1.0), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(box_focal_weight(variance, 0.5)[1:], expected[1:].sqrt(), rtol=1e-5, atol=1e-6)
    assert float(box_focal_weight(torch.tensor(0.0585), 0.5)) == pytest.approx(1.0, abs=1e-3)
    assert float(box_focal_weight(torch.tensor(0.001), 0.5)) == pytest.approx(1.56, abs=0.005)
    assert pytest.approx(float(Normal(0.0, 1.0).entropy())) == MAX_BOX_ENTROPY


def test_box_focal_weight__its_zero_lies_at_the_ceiling() -> None:
    # E_norm = 1/2 log(2 pi e 16) = 2.8052: the weight is log(16 / s2) / 5.6105
    variance = torch.tensor([16.0, 1.0, 0.5])
    expected = torch.tensor([0.0, math.log(16.0) / 5.610466, math.log(32.0) / 5.610466])
    torch.testing.assert_close(box_focal_weight(variance, 1.0, ceiling=16.0), expected, rtol=1e-5, atol=1e-6)


def test_beta_weight__by_hand_and_without_gradient() -> None:
    variance = torch.tensor([0.25, 4.0], requires_grad=True)
    assert beta_weight(variance, 0.5).tolist() == [0.5, 2.0]
    assert beta_weight(variance, 0.0).tolist() == [1.0, 1.0]
    assert not beta_weight(variance, 1.0).requires_grad


@given(st.floats(-3, 3), st.floats(0.01, 4), st.floats(-3, 3))
def test_beta_weight__one_teaches_the_mean_as_the_squared_error_does(mean: float, s2: float, target: float) -> None:
    mu = torch.tensor(mean, dtype=torch.float64, requires_grad=True)
    variance = torch.tensor(s2, dtype=torch.float64)
    (beta_weight(variance, 1.0) * gaussian_nll(mu, variance, torch.tensor(target, dtype=torch.float64))).backward()
    assert mu.grad is not None and float(mu.grad) == pytest.approx(mean - target, abs=1e-9)


def test_box_focal_weight__clamped_and_switched_off() -> None:
    variance = torch.tensor([1.0, 0.5, 0.001])
    clamped = box_focal_weight(variance, 0.5, clamp=True)
    torch.testing.assert_close(clamped, torch.tensor([0.0, math.sqrt(math.log(2.0) / 2.837877), 1.0]))
    torch.testing.assert_close(box_focal_weight(variance, 0.0), torch.ones(3))


def test_box_focal_weight__above_one_is_zero_and_has_no_gradient() -> None:
    weight = box_focal_weight(torch.tensor([1.5], requires_grad=True), 0.5)
    assert not weight.requires_grad and float(weight) == 0.0


def test_smooth_l1__by_hand() -> None:
    # beta 1/9: below it 0.5 x^2 / beta, above it x - beta / 2
    found = smooth_l1(torch.tensor([0.0, 0.1, -2.0]), torch.zeros(3))
    torch.testing.assert_close(found, torch.tensor([0.0, 0.5 * 0.01 * 9, 2 - 0.5 / 9]))


def test_mean_over__rows_over_the_count() -> None:
    torch.testing.assert_close(mean_over(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 4, torch.zeros(1)), torch.tensor(2.5))


def test_mean_over__no_rows_give_zero_with_a_gradient() -> None:
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    loss = mean_over((weight * 2)[:0], own_count("", 0), weight * 2)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert weight.grad is not None and weight.grad.tolist() == [0.0, 0.0]


def _rows(seed: int) -> Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (gaussian_nll, (_rows(0), _rows(1).exp(), _rows(2))),
        (gaussian_cross_entropy, (_rows(0), _rows(1).exp(), _rows(2), _rows(3).exp())),
        (lambda q: soft_cross_entropy(_rows(0).softmax(dim=-1), q), (_rows(1),)),
        (lambda z: objectness_cross_entropy(_rows(0).softmax(dim=-1), z), (_rows(1)[:, 0],)),
        (lambda x: sharpen_classes(x, 0.5), (_rows(0),)),
        (lambda x: mean_over(x, 5, x), (_rows(0),)),
    ],
)
def test_losses__gradients_match_finite_differences(
    function: Callable[..., Tensor], arguments: tuple[Tensor, ...]
) -> None:
    leaves = tuple(argument.clone().requires_grad_() for argument in arguments)
    assert torch.autograd.gradcheck(function, leaves)
