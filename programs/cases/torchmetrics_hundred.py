"""A hundred measures of torchmetrics on drawn predictions, in two updates each."""

import warnings

import torch
import torchmetrics
from torchmetrics import clustering, image, nominal, regression, retrieval, segmentation, text

warnings.simplefilter("ignore")
torch.manual_seed(0)
found = {}


def flat(value):
    if isinstance(value, dict):
        return {key: flat(one) for key, one in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [flat(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def told(name, metric, *updates):
    for update in updates:
        metric.update(*update)
    found[name] = flat(metric.compute())
    print(name, found[name])


half = slice(0, 30), slice(30, 60)
logits, classes = torch.randn(60, 4).softmax(-1), torch.randint(0, 4, (60,))
chance, truth = torch.rand(60), torch.randint(0, 2, (60,))
many, marks = torch.rand(60, 3), torch.randint(0, 2, (60, 3))
TASKS = (
    "Accuracy AUROC AveragePrecision CalibrationError CohenKappa ConfusionMatrix F1Score "
    "HammingDistance HingeLoss JaccardIndex MatthewsCorrCoef Precision Recall Specificity "
    "StatScores"
).split()
for name in TASKS:
    kind = getattr(torchmetrics, name)
    told(f"binary {name}", kind(task="binary"), *[(chance[h], truth[h]) for h in half])
    told(f"multiclass {name}", kind(task="multiclass", num_classes=4),
         *[(logits[h], classes[h]) for h in half])  # fmt: skip
    if name not in ("CalibrationError", "CohenKappa", "HingeLoss"):
        told(f"multilabel {name}", kind(task="multilabel", num_labels=3),
             *[(many[h], marks[h]) for h in half])  # fmt: skip
told("exact match", torchmetrics.ExactMatch(task="multilabel", num_labels=3), (many, marks))
told(
    "fbeta", torchmetrics.FBetaScore(task="multiclass", num_classes=4, beta=0.5), (logits, classes)
)
for name in ("CoverageError", "RankingAveragePrecision", "RankingLoss"):
    kind = getattr(torchmetrics.classification, f"Multilabel{name}")
    told(name, kind(num_labels=3), (many, marks))

x, y = torch.rand(60) + 0.1, torch.rand(60) + 0.1
for name in (
    "ConcordanceCorrCoef CosineSimilarity ExplainedVariance KendallRankCorrCoef LogCoshError "
    "MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogError "
    "MinkowskiDistance PearsonCorrCoef R2Score RelativeSquaredError SpearmanCorrCoef "
    "SymmetricMeanAbsolutePercentageError TweedieDevianceScore WeightedMeanAbsolutePercentageError"
).split():
    words = {"p": 3} if name == "MinkowskiDistance" else {}
    shape = (20, 3) if name == "CosineSimilarity" else (60,)
    told(name, getattr(regression, name)(**words), (x.reshape(shape), y.reshape(shape)))
told("KLDivergence", torchmetrics.KLDivergence(), (logits[:30], logits[30:]))

groups = torch.randint(0, 6, (60,)).sort().values
for name in (
    "RetrievalAUROC RetrievalFallOut RetrievalHitRate RetrievalMAP RetrievalMRR "
    "RetrievalNormalizedDCG RetrievalPrecision RetrievalRecall RetrievalRPrecision"
).split():
    metric = getattr(retrieval, name)(empty_target_action="skip")
    metric.update(chance, truth, indexes=groups)
    found[name] = flat(metric.compute())
    print(name, found[name])

pictures = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
for name, words in {
    "PeakSignalNoiseRatio": {"data_range": 1.0}, "StructuralSimilarityIndexMeasure": {},
    "UniversalImageQualityIndex": {}, "SpectralAngleMapper": {},
    "RelativeAverageSpectralError": {},
    "ErrorRelativeGlobalDimensionlessSynthesis": {}, "RootMeanSquaredErrorUsingSlidingWindow": {},
    "SpatialCorrelationCoefficient": {}, "SpectralDistortionIndex": {},
    "VisualInformationFidelity": {},
}.items():  # fmt: skip
    told(name, getattr(image, name)(**words), pictures)
told("TotalVariation", image.TotalVariation(), (pictures[0],))

a, b = torch.randint(0, 4, (60,)), torch.randint(0, 4, (60,))
for name in (
    "AdjustedMutualInfoScore AdjustedRandScore CompletenessScore FowlkesMallowsIndex "
    "HomogeneityScore MutualInfoScore NormalizedMutualInfoScore RandScore VMeasureScore"
).split():
    told(name, getattr(clustering, name)(), (a, b))
for name in ("CalinskiHarabaszScore", "DaviesBouldinScore", "DunnIndex"):
    told(name, getattr(clustering, name)(), (torch.cat([many, many]), torch.cat([a, b])))
for name in ("CramersV", "PearsonsContingencyCoefficient", "TheilsU", "TschuprowsT"):
    told(name, getattr(nominal, name)(num_classes=4), (a, b))

said, meant = ["the cat sat on a mat", "rain again"], ["the cat sat on the mat", "more rain again"]
for name in ("CharErrorRate", "MatchErrorRate", "WordErrorRate", "WordInfoLost",
             "WordInfoPreserved", "EditDistance"):  # fmt: skip
    told(name, getattr(text, name)(), (said, meant))
for name in ("BLEUScore", "CHRFScore", "TranslationEditRate"):
    told(name, getattr(text, name)(), (said, [[one] for one in meant]))
told("Perplexity", text.Perplexity(), (logits.reshape(4, 15, 4).log(), classes.reshape(4, 15)))

masks = torch.randint(0, 2, (2, 4, 12, 12)), torch.randint(0, 2, (2, 4, 12, 12))
told("MeanIoU", segmentation.MeanIoU(num_classes=4), masks)
told("GeneralizedDiceScore", segmentation.GeneralizedDiceScore(num_classes=4), masks)
wave = torch.randn(2, 400), torch.randn(2, 400)
for name in ("SignalNoiseRatio", "ScaleInvariantSignalNoiseRatio",
             "ScaleInvariantSignalDistortionRatio"):  # fmt: skip
    told(name, getattr(torchmetrics.audio, name)(), wave)
for name in ("MeanMetric", "SumMetric", "MaxMetric", "MinMetric", "CatMetric"):
    told(name, getattr(torchmetrics, name)(), (x,), (y,))
print("measures", len(found))
