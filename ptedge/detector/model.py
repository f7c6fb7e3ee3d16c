"""Probabilistic Faster R-CNN: one feature map of stride 16, Gaussian RPN and ROI heads, learnable anchors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torchvision.ops import clip_boxes_to_image

from ptedge.calibration import NO_OFFSET, NO_SCALE, Sides
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD

from .anchors import LearnableAnchors
from .backbone import build_backbone
from .config import CLUSTER_IOU, ModelConfig
from .gaussian import calibrate_sides
from .roi_heads import RawDetections, ROIHead, ROIOutput, postprocess
from .rpn import RPNHead, RPNOutput, propose


@dataclass(frozen=True)
class Outputs:
    """What the first stage says of a batch, and the feature maps that the second stage and alignment work on.

    Attributes:
        early: [B, c, h, w] feature map after the backbone's first stages, as many as were asked for.
        features: [B, C, H/16, W/16] the last one.
        rpn: objectness and Gaussian deltas of every anchor.
        proposals: one [R_i, 4] xyxy tensor an image, input pixels, best objectness first; without gradient.
    """

    early: Tensor
    features: Tensor
    rpn: RPNOutput
    proposals: list[Tensor]


class ProbabilisticFasterRCNN(nn.Module):
    """The detector.

    Args:
        config: its settings.
        num_classes: K, background not counted.

    Reference:
        "Learning Domain Adaptive Object Detection with Probabilistic Teacher", ICML 2022, section 3.1.
    """

    pixel_mean: Tensor
    pixel_std: Tensor
    side_offset: Tensor
    sigma_scale: Tensor

    def __init__(self, config: ModelConfig, num_classes: int) -> None:
        super().__init__()
        self.config = config
        self.num_classes = num_classes
        self.backbone = build_backbone(config.backbone, config.frozen_stages)
        channels = self.backbone.channels
        self.anchors = LearnableAnchors(config.anchor_sizes, config.anchor_ratios)
        self.rpn_head = RPNHead(channels, config.num_anchors, config.probabilistic, config.variance_floor)
        self.roi_head = ROIHead(
            channels,
            num_classes,
            config.probabilistic,
            config.variance_floor,
            config.variance_ceiling,
            hidden=config.roi_hidden,
            reduced=config.roi_channels,
        )
        self.register_buffer("pixel_mean", torch.tensor(PIXEL_MEAN).reshape(1, 3, 1, 1), persistent=False)
        self.register_buffer("pixel_std", torch.tensor(PIXEL_STD).reshape(1, 3, 1, 1), persistent=False)
        # no weights: the checkpoint keeps them beside the state, and training goes without
        self.calibrated = False
        self.register_buffer("side_offset", torch.tensor(NO_OFFSET), persistent=False)
        self.register_buffer("sigma_scale", torch.tensor(NO_SCALE), persistent=False)

    def set_sides(self, offset: Sides, scale: Sides) -> None:
        """Correct what :meth:`detect` answers from now on.

        Args:
            offset: as :attr:`ptedge.calibration.SideCalibration.offset`.
            scale: as :attr:`ptedge.calibration.SideCalibration.scale`.
        """
        self.side_offset.copy_(torch.tensor(offset))
        self.sigma_scale.copy_(torch.tensor(scale))
        self.calibrated = True

    def normalise(self, images: Tensor) -> Tensor:
        """Pixels as the backbone wants them.

        Args:
            images: [B, 3, H, W] RGB, uint8 or float, 0..255.
        """
        return (images.to(self.pixel_mean.dtype) - self.pixel_mean) / self.pixel_std

    def forward(self, images: Tensor, early_stage: int | None = None) -> Outputs:
        """The first stage; :meth:`roi` is the second, on these proposals or on a sample of them.

        Args:
            images: [B, 3, H, W] RGB 0..255, letterboxed to the config's input size.
            early_stage: how many stages of the backbone lie before ``early``; all of them when not given.
        """
        early, features = self.feature_maps(images, early_stage)
        rpn = self.rpn(features)
        return Outputs(early, features, rpn, self.proposals(rpn, training=self.training))

    def feature_maps(self, images: Tensor, early_stage: int | None = None) -> tuple[Tensor, Tensor]:
        """An early feature map and the last one, see :class:`Outputs`."""
        stage = early_stage if early_stage is not None else len(self.backbone.stages)
        return self.backbone.early_and_last(self.normalise(images), stage)

    def features(self, images: Tensor) -> Tensor:
        """Feature map [B, C, H/16, W/16] of images [B, 3, H, W] RGB 0..255."""
        features: Tensor = self.backbone(self.normalise(images))
        return features

    def rpn(self, features: Tensor) -> RPNOutput:
        """Objectness and Gaussian deltas of every anchor."""
        logits, deltas, variances = self.rpn_head(features)
        return RPNOutput(logits, deltas, variances, self.anchors(*features.shape[-2:]))

    def proposals(self, output: RPNOutput, *, training: bool) -> list[Tensor]:
        """Proposals of every image, input pixels; how many follows the config's train or test setting."""
        top_n = self.config.rpn_train_top_n if training else self.config.rpn_test_top_n
        return propose(output, self.config.input_size, top_n, self.config.rpn_nms)

    def roi(self, features: Tensor, proposals: list[Tensor]) -> ROIOutput:
        """Class logits and Gaussian deltas of every proposal of the batch."""
        output: ROIOutput = self.roi_head(features, proposals)
        return output

    @torch.no_grad()
    def detect(self, images: Tensor) -> list[RawDetections]:
        """Detections of a batch; the model should be in eval mode.

        Args:
            images: [B, 3, H, W] RGB 0..255, letterboxed to the config's input size.

        Returns:
            One entry an image, in input pixels.
        """
        return self.detect_features(self.features(images), self.config)

    @torch.no_grad()
    def detect_features(
        self, features: Tensor, config: ModelConfig, cluster_iou: float = CLUSTER_IOU
    ) -> list[RawDetections]:
        """Detections from a feature map, under any thresholds and counts.

        Args:
            features: [B, C, h, w] of the config's input size.
            config: its input size, rules, thresholds and counts are used; usually the model's own.
            cluster_iou: of :func:`~ptedge.detector.cluster.cluster_sigma`, where the config asks for it.

        Returns:
            One entry an image, in input pixels.
        """
        proposals = propose(self.rpn(features), config.input_size, config.rpn_test_top_n, config.rpn_nms)
        output = self.roi(features, proposals)
        found = [
            postprocess(
                rows,
                boxes,
                config.input_size,
                score_rule=config.score_rule,
                score_threshold=config.score_threshold,
                nms_threshold=config.nms,
                candidates=config.candidates,
                max_detections=config.max_detections,
                cluster_iou=cluster_iou if config.clustered else None,
            )
            for rows, boxes in zip(output.split([len(p) for p in proposals]), proposals, strict=True)
        ]
        return [self._calibrate(one, config.input_size) for one in found] if self.calibrated else found

    def _calibrate(self, found: RawDetections, input_size: tuple[int, int]) -> RawDetections:
        boxes, sigma = calibrate_sides(found.boxes, found.sigma, self.side_offset, self.sigma_scale)
        return replace(found, boxes=clip_boxes_to_image(boxes, input_size), sigma=sigma)
