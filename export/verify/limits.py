"""How far an answer may be from the float32 answer of the checkpoint, for each kind of arithmetic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What still counts as the same detector.

    Boxes, scores and sigma are those of *sure* detections, see :data:`ptedge.export.verify.deviation.SURE`.

    Attributes:
        name: of the arithmetic.
        matched: least share of sure detections, of either side, that the other side has too, box and score in limits.
        box: farthest that a side may lie away, in pixels of the network input...
        box_relative: ...or as a share of the box's longer side, where that is more.
        score: largest difference of a score.
        sigma: largest relative difference of sigma in the median, over all box sides.
        ap50: most AP50 that may be lost on labelled data.
        coverage: largest difference of the share of errors within 1 and within 2 sigma.
        layer: largest difference of an intermediate output, root mean square, relative to its own.
    """

    name: str
    matched: float
    box: float
    box_relative: float
    score: float
    sigma: float
    ap50: float
    coverage: float
    layer: float

    def __str__(self) -> str:
        return (
            f"at least {self.matched:.0%} matched, box {self.box:g} px or {self.box_relative:.1%}, "
            f"score {self.score:g}, sigma {self.sigma:.1%} in the median, AP50 {self.ap50:g}, "
            f"coverage {self.coverage:g}"
        )


# Libraries add the same float32 products in another order: 1e-6 a layer, 1e-5 behind the backbone. The detections
# themselves are held to the stricter rule of compare.py on the CPU; this is for data and for layers. AP50 may move when
# two detections of nearly equal score change places: one such pair among 1,000 boxes is 0.001.
FP32 = Limits("float32", 0.99, 0.1, 0.001, 0.001, 0.001, 0.001, 0.001, 1e-3)

# Ten bits of mantissa: each product is rounded by at most 2^-11 = 0.0005, and the roundings of a hundred layers are
# independent, which leaves about 0.005 of a feature. A box delta of 1 is a tenth of the proposal; 0.5 % of a delta is
# less than a pixel but for boxes of more than 200 pixels, so those have a relative limit. AP50, sigma and coverage are
# the most that the conversion may cost. TF32, which GPUs use for float32 products, has the same ten bits.
FP16 = Limits("float16", 0.98, 1.0, 0.005, 0.02, 0.01, 0.002, 0.02, 0.02)
TF32 = Limits("TF32", 0.98, 1.0, 0.005, 0.02, 0.01, 0.002, 0.02, 0.02)

# Layers are chosen so that what the predictors give moves by at most 1.5 % of its spread (int8_choice.py); single
# layers were off by up to 0.06 (EfficientNet-Lite0) and 0.14 (VGG16). What a detector may lose by that is a decision:
# 0.01 AP50, 5 % of sigma, 2 points of coverage; labelled data is the judge of it. Single detections move more, as
# another of several overlapping proposals wins: of two conversions of EfficientNet-Lite0, 240 x 416, 96 and 97 % of 336
# and 261 detections stayed within these limits, 98 % of those in 16 frames. One grey level of noise moves more of them.
INT8 = Limits("int8", 0.80, 3.0, 0.04, 0.10, 0.05, 0.01, 0.02, 0.20)

BY_PRECISION = {"fp32": FP32, "fp16": FP16, "int8": INT8}


def limits_for(precision: str, backend: str) -> Limits:
    """The limits of a bundle on a backend.

    Args:
        precision: ``fp32``, ``fp16`` or ``int8``.
        backend: ``cpu``, ``cuda`` or ``tensorrt``; a GPU may use TF32 where float32 is asked for.
    """
    return TF32 if precision == "fp32" and backend != "cpu" else BY_PRECISION[precision]
