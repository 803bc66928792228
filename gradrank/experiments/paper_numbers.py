"""What the papers themselves state of the quantities that the claims are about.

A claim about a difference has the two numbers that the paper prints, one of another quantity the number itself. Figures
that are drawn without numbers, and bounds (*more than 70 %*), which are in the claims, state none.
"""

from __future__ import annotations

from collections.abc import Mapping

Stated = tuple[float, ...]
"""One number, or two whose difference it is."""


def _higher(measure: str, rows: Mapping[tuple[str, str], Stated]) -> dict[str, Stated]:
    """By the sentences of claims that one system has a higher mean of a measure than another."""
    return {f"{a} has a higher {measure} than {b}": numbers for (a, b), numbers in rows.items()}


def _weight_pairs(measure: str, winner: float, others: Mapping[str, float]) -> dict[str, Stated]:
    best = "ranknet-weight-pairs"
    return _higher(measure, {(best, name): (winner, value) for name, value in others.items()})


def _falls(measure: str, objective: str = "") -> dict[str, Stated]:
    """None of 459 directions improves a net."""
    nets = ("single layer", "two layers, 10 hidden nodes")
    return {f"{measure} falls in all directions: {net}{objective}, steps 0.1…1": (0.0,) for net in nets}


def _focused(values: Mapping[str, float]) -> dict[str, Stated]:
    families = {
        "FocusedSVM": ("SVMmap", "RankSVM"),
        "FocusedBoost": ("AdaRank", "RankBoost"),
        "FocusedNet": ("ListNet", "RankNet"),
    }
    pairs = {(one, end): (values[one], values[end]) for one, ends in families.items() for end in ends}
    return _higher("KappaNDCG@10", pairs)


# Svore et al., table 2.
_GRADIENT = (0.6194, 0.6166)
_LINEAR = (0.6219, 0.6194)

PAPER_NUMBERS: dict[str, dict[str, Stated]] = {
    # Donmez et al., tables 1 and 2.
    "donmez-1": _weight_pairs(
        "MAP(rel=2)",
        0.462,
        {"spring-smooth": 0.424, "local-gradient": 0.435, "local-cost": 0.427, "discrete-bounded": 0.401},
    ),
    "donmez-2": _weight_pairs(
        "MRR(rel=2)",
        0.524,
        {"spring-smooth": 0.498, "local-gradient": 0.512, "local-cost": 0.515, "discrete-bounded": 0.471},
    ),
    # Table 3.
    "donmez-3": {
        **_higher(
            "NDCG",
            {
                ("training for NDCG", "for NDCG@10"): (0.723, 0.722),
                ("training for NDCG", "for MAP(rel=2)"): (0.723, 0.718),
                ("training for NDCG", "for MRR(rel=2)"): (0.723, 0.704),
            },
        ),
        **_higher(
            "MAP(rel=2)",
            {
                ("training for MAP(rel=2)", "for NDCG"): (0.337, 0.335),
                ("training for MAP(rel=2)", "for NDCG@10"): (0.337, 0.335),
                ("training for MAP(rel=2)", "for MRR(rel=2)"): (0.337, 0.314),
            },
        ),
        **_higher("NDCG@10", {("training for NDCG", "for NDCG@10"): (0.442, 0.422)}),
        **_higher("MRR(rel=2)", {("training for NDCG", "for MRR(rel=2)"): (0.546, 0.526)}),
    },
    # What training for NDCG is ahead by in table 4, and before in table 3.
    "donmez-4": {
        f"training for it on all queries has a higher {measure} over training for NDCG than on part of them": numbers
        for measure, numbers in {"NDCG@10": (-0.004, -0.020), "MRR(rel=2)": (-0.011, -0.020)}.items()
    },
    "donmez-fig1": _falls("NDCG"),
    "donmez-fig2": _falls("NDCG@10"),
    "donmez-fig3": _falls("MAP(rel=2)"),
    "donmez-fig4": _falls("MRR(rel=2)", ", Lambda(MRR(rel=2), pairs=misranked)"),
    # Two of the four directions that are drawn.
    "donmez-fig6": {"NDCG rises in some directions: random weights, steps 0.1…1": (0.5,)},
    # Niu et al., table 1: 5.51 and 13.87 seconds; 13.13 and 11.78 minutes.
    "niu-1": {
        "a preference takes less than half the time of a grade": (5.51 / 13.87,),
        "a query takes about as long with both tools": (13.13 / 11.78,),
    },
    "niu-2": _higher("agreement", {("assessors of preferences", "a toss between agreeing and not"): (0.745, 0.5)}),
    "niu-3": {
        **_higher("agreement", {("top-k labeling", "grades"): (0.745, 0.547)}),
        **_higher("agreement without ties", {("top-k labeling", "grades"): (0.897, 0.831)}),
    },
    # The lower halves of tables 4 and 5.
    "niu-4": _focused(
        {
            "SVMmap": 0.6690,
            "RankSVM": 0.6655,
            "FocusedSVM": 0.6739,
            "AdaRank": 0.6190,
            "RankBoost": 0.6571,
            "FocusedBoost": 0.6628,
            "ListNet": 0.6613,
            "RankNet": 0.6603,
            "FocusedNet": 0.6735,
        }
    ),
    "niu-5": _focused(
        {
            "SVMmap": 0.3858,
            "RankSVM": 0.3872,
            "FocusedSVM": 0.3886,
            "AdaRank": 0.3766,
            "RankBoost": 0.3789,
            "FocusedBoost": 0.3980,
            "ListNet": 0.3624,
            "RankNet": 0.3813,
            "FocusedNet": 0.4058,
        }
    ),
    # Svore et al., table 1, clicks of the same query.
    "svore-1": {
        "λ(L) + λ(C) has a higher CNDCG@3 than λ(L)": (0.4675, 0.4312),
        "λ(L) + λ(C) loses less than 0.005 of NDCG@3 against λ(L)": (0.6177, 0.6166),
    },
    # Table 2, the linear schedule.
    "svore-2": _higher(
        "NDCG@3",
        {
            ("λ(L), gradient", "λ(L), Newton"): _GRADIENT,
            ("λ(L) + λ(S)", "λ(L), gradient"): _LINEAR,
            ("λ(L) + λ(S)", "λ(L) + λ(S@3)"): (0.6219, 0.6182),
        },
    ),
    "svore-fig2": {
        "λ(C) of all pairs agrees with λ(L) on most documents": (0.7,),
        "λ(C) of pairs of equal grades without zero clicks agrees at least 10 points more": (0.15,),
    },
    # All of the training data is that of table 2.
    "svore-fig7": _higher(
        "NDCG@3",
        {
            ("λ(L) + λ(S) with 1 of the queries", "λ(L), gradient"): _LINEAR,
            ("λ(L), gradient with 1 of the queries", "λ(L), Newton"): _GRADIENT,
        },
    ),
    # Wu et al., tables 1 and 2.
    "wu-1": _higher(
        "NDCG@10",
        {
            ("LambdaMART", "McRank"): (0.879, 0.837),
            ("LambdaMART", "LambdaRank"): (0.879, 0.754),
            ("McRank", "LambdaRank"): (0.837, 0.754),
        },
    ),
    "wu-2": {
        "LambdaMART and McRank differ by less than 0.01 of NDCG@10": (0.693, 0.697),
        **_higher(
            "NDCG@10",
            {("LambdaMART", "LambdaRank"): (0.693, 0.686), ("McRank", "LambdaRank"): (0.697, 0.686)},
        ),
    },
    # "Approximately half as many trees."
    "wu-fig2": {"LambdaMART needs at most two thirds of McRank's trees for McRank's best NDCG@10": (0.5,)},
    "wu-3": {"LambdaSMART gains less than 0.01 of NDCG@10 over the background net": (0.707, 0.705)},
    # Domains 1 to 3 stand for English, Japanese and Chinese, the own one for Korean.
    "wu-4": _higher(
        "NDCG@10",
        {
            ("the net of the own domain", f"that of domain {number}"): (0.614, value)
            for number, value in enumerate((0.583, 0.539, 0.528), 1)
        },
    ),
    "wu-5": {
        **_higher(
            "NDCG@10",
            {
                (f"domain {number} adapted", other): (adapted, value)
                for number, (adapted, before) in enumerate(((0.647, 0.583), (0.636, 0.539), (0.641, 0.528)), 1)
                for other, value in ((f"the net of domain {number}", before), ("interpolation", 0.615))
            },
        ),
        "interpolation loses less than 0.005 of NDCG@10 against the net of the own domain": (0.615, 0.614),
    },
}
"""By recipe and by what a claim says."""
