"""The methods of the literature as values.

Each takes its heads and objective from its paper. Learning rates are those that public benchmarks
on small images use with 256 samples a batch; a recipe's remark says where we left the paper.
Contrastive recipes take the mean over those alike to a row, as all other objectives do: with labels
they are many, and a sum would multiply the learning rate by their number.
"""

from __future__ import annotations

import difflib

from likewise.training.recipe import Recipe

RECIPES: dict[str, Recipe] = {
    "simclr": Recipe(
        title="SimCLR",
        paper="Chen et al. 2020",
        objective="NTXent",
        options={"temperature": 0.2, "positives": "mean"},
        projector=(512, 128),
        projector_ends_normalized=True,
        views="simclr-tuned",  # chosen on 32 pixels
        large_views="simclr",
        lr=0.3,
        remark="a lower temperature than the paper's 0.5, more than twice the usual learning rate, "
        "and views of small images with blur, solarisation, stronger colours and no tiny crops; "
        "the batch norm after the projector is that of SimCLR's own code",
    ),
    "dcl": Recipe(
        title="Decoupled contrastive learning",
        paper="Yeh et al. 2022",
        objective="DecoupledContrastive",
        options={"temperature": 0.1, "positives": "mean"},
        projector=(512, 128),
    ),
    "balanced": Recipe(
        title="Balanced contrastive loss",
        paper="Lee 2025, eq. 17",
        objective="BalancedContrastive",
        options={"alpha": 2.0, "weight": 4.0, "positives": "mean"},
        projector=(512, 128),
    ),
    "generalized-nt-xent": Recipe(
        title="Generalised NT-Xent",
        paper="Lee 2025, section 6",
        objective="GeneralizedNTXent",
        options={"alpha": 2.0, "weight": 2.0, "positives": "mean"},
        projector=(512, 128),
    ),
    "vicreg": Recipe(
        title="VICReg",
        paper="Bardes et al. 2021",
        objective="VICReg",
        projector=(2048, 2048, 2048),
        large_views="byol",
        optimizer="lars",
        lr=0.3,
        weight_decay=1e-4,
        trust_coefficient=0.02,
        dimension_power=-1,
        remark="variance and covariance are means over the views: beside the authors' code, half "
        "the covariance weight (theirs is 2 here), with which all figures were measured; small "
        "images have SimCLR's views",
    ),
    "barlow-twins": Recipe(
        title="Barlow Twins",
        paper="Zbontar et al. 2021",
        objective="BarlowTwins",
        projector=(2048, 2048, 2048),
        large_views="byol",
        optimizer="lars",
        lr=0.3,
        weight_decay=1e-4,
        trust_coefficient=0.02,
        dimension_power=-1,
        remark="small images have SimCLR's views",
    ),
    "spectral": Recipe(
        title="Spectral contrastive loss",
        paper="HaoChen et al. 2021",
        objective="SpectralContrastive",
        projector=(1024, 256),
        optimizer="adamw",
        lr=5e-4,
        weight_decay=1e-4,
    ),
    "w-mse": Recipe(
        title="W-MSE",
        paper="Ermolov et al. 2021",
        objective="WhiteningMSE",
        options={"slice_size": 128},
        projector=(1024, 64),
        optimizer="adamw",
        lr=1e-3,
        weight_decay=1e-6,
    ),
    "simsiam": Recipe(
        title="SimSiam",
        paper="Chen & He 2021",
        objective="NegativeCosine",
        projector=(2048, 2048),
        projector_ends_normalized=True,
        predictor=(512,),
        teacher="stopped",
        large_views="moco-v2",
        lr=0.25,
        remark="a larger learning rate than the paper's 0.03 for small images, which decays for "
        "the predictor, too; small images have SimCLR's views",
    ),
    "byol": Recipe(
        title="BYOL",
        paper="Grill et al. 2020",
        objective="BYOLRegression",
        projector=(2048, 256),
        predictor=(2048,),
        teacher="momentum",
        momentum=0.99,
        views="byol",
        lr=0.25,
    ),
    "moco-v2": Recipe(
        title="MoCo v2",
        paper="Chen et al. 2020",
        objective="NTXent",
        options={"temperature": 0.1, "positives": "mean"},
        projector=(512, 128),
        teacher="momentum",
        momentum=0.99,
        queue=4096,
        large_views="moco-v2",
        remark="keys of the batch are negatives too, beside those of the queue; small images have "
        "SimCLR's views",
    ),
    "swav": Recipe(
        title="SwAV",
        paper="Caron et al. 2020",
        objective="SwAV",
        options={"prototypes": 512},
        projector=(2048, 128),
        large_views="multi-crop",
        optimizer="adamw",
        lr=5e-4,
        weight_decay=1e-6,
        remark="on small images two full views, as multi-crop finds no room there; prototypes "
        "learn from the first step on",
    ),
    "nnclr": Recipe(
        title="NNCLR",
        paper="Dwibedi et al. 2021",
        objective="NTXent",
        options={"temperature": 0.1, "denominator": "all", "positives": "mean"},
        projector=(2048, 2048, 256),
        projector_ends_normalized=True,
        predictor=(2048,),
        teacher="stopped",
        queue=4096,
        neighbors=True,
    ),
    "tcr": Recipe(
        title="Total coding rate",
        paper="Li et al. 2022",
        objective="TotalCodingRate",
        options={"invariance_weight": 20.0},
        projector=(2048, 128),
        lr=0.03,
    ),
    "emp-ssl": Recipe(
        title="EMP-SSL",
        paper="Tong et al. 2023",
        objective="EMPSSL",
        projector=(4096, 512),
        n_views=20,
        optimizer="lars",
        lr=0.3,
        weight_decay=1e-4,
        trust_coefficient=0.02,
        dimension_power=-1,
        remark="crops of any size, as SimCLR's, in place of patches of one",
    ),
    "mec": Recipe(
        title="Maximum entropy coding",
        paper="Liu et al. 2022",
        objective="MaximumEntropyCoding",
        options={"covariance": "symmetric", "distortion": 0.25},
        projector=(512, 512, 512),
        optimizer="lars",
        lr=0.3,
        weight_decay=1e-4,
        trust_coefficient=0.02,
        dimension_power=-1,
        remark="the symmetric part of the cross-covariance, on which the series is bounded, and "
        "an epsilon^2 of d / 4 for 0.06 d, with which a few dimensions may hold all energy; both "
        "branches learn, without predictor and momentum",
    ),
    "corinfomax": Recipe(
        title="CorInfoMax",
        paper="Ozsoy et al. 2022",
        objective="CorInfoMax",
        options={"momentum": 0.01, "epsilon": 1e-6, "invariance_weight": 250.0},
        projector=(2048, 2048, 64),
        dimension_power=-1,
        remark="a small epsilon: with 0.01 a collapsed batch costs hardly more than a spread one",
    ),
    "matrix-ssl": Recipe(
        title="Matrix-SSL",
        paper="Zhang et al. 2024, eq. 22",
        objective="MatrixSSL",
        options={"covariance": "symmetric"},
        projector=(512, 512, 16),
        optimizer="lars",
        lr=0.3,
        weight_decay=1e-4,
        trust_coefficient=0.02,
        dimension_power=1,
        remark="as matrix-ssl-momentum, but with so few dimensions that views can agree on all of "
        "them, which is where the loss has its least value; both branches learn, without predictor "
        "and momentum: 25 points more after 20 epochs of CIFAR-10",
    ),
    "matrix-ssl-momentum": Recipe(
        title="Matrix-SSL with a momentum teacher",
        paper="Zhang et al. 2024, appendix F",
        objective="MatrixSSL",
        options={"covariance": "symmetric"},
        projector=(512, 512, 512),
        predictor=(512,),
        teacher="momentum",
        weight_decay=1e-5,
        dimension_power=1,
        lr=0.03,
        remark="the symmetric part of the cross-covariance: as printed, two branches that lie in "
        "one plane, turned against each other, have the least loss",
    ),
    "supervised-graph": Recipe(
        title="VICReg on the graph of the labels",
        paper="Cabannes et al. 2023, appendix C.3",
        objective="VICReg",
        options={"invariance_weight": 25.0, "variance_weight": 25.0, "covariance_weight": 25.0},
        projector=(64, 16),
        optimizer="adamw",
        lr=3e-3,
        needs_labels=True,
        dimension_power=-1,
        remark="AdamW: with 16 outputs and labels SGD diverges on CIFAR-10",
    ),
    "supervised-mse": Recipe(
        title="Regression on the labels",
        paper="Cabannes et al. 2023, appendix C.3",
        objective="ClassRegression",
        projector=(64,),
        optimizer="adamw",
        lr=3e-3,
        needs_labels=True,
        remark="the projector ends with one output for every class; AdamW: SGD hardly leaves the "
        "mean of the labels on images of which little is seen at first, such as digits",
    ),
}


def recipe(name: str) -> Recipe:
    """The recipe of that name.

    A run keeps the name of its recipe, so that one of your own gets a name first::

        RECIPES["mine"] = Recipe(title="Mine", paper="ours", objective="VICReg")

    >>> recipe("simclr").objective
    'NTXent'
    """
    if not isinstance(name, str):
        raise ValueError(
            f"recipe is a {type(name).__name__}: give its name, which a run can write down; your "
            'own gets one with likewise.training.RECIPES["mine"] = Recipe(...)'
        )
    if name not in RECIPES:
        near = difflib.get_close_matches(name.lower(), RECIPES, n=1)
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"recipe is {name!r}{meant}: give one of {', '.join(RECIPES)}, or register your own "
            f"first, in Python: likewise.training.RECIPES[{name!r}] = Recipe(...)"
        )
    return RECIPES[name]
