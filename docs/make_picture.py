"""Draw docs/images/curves.svg: learning curves of two rankers, and how they differ on test data by several measures.

Run: python docs/make_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib import pyplot as plt

from gradrank import ERR, MAP, MART, MRR, NDCG, LambdaMART, compare, make_splits

TARGET = Path(__file__).parent / "images" / "curves.svg"
COLOURS = {"LambdaMART": "#3949ab", "MART": "#757575"}
MEASURES = [NDCG(10), NDCG(1), MAP(rel=2), MRR(rel=3), ERR(10)]


def main() -> None:
    """Train, compare, draw."""
    data = make_splits(2000, n_docs=30, n_features=25, random_state=1, noise=0.5)
    shape = {"n_estimators": 300, "num_leaves": 15, "learning_rate": 0.05}
    learners = {"LambdaMART": LambdaMART("NDCG@10", **shape), "MART": MART(measure="NDCG@10", **shape)}
    for learner in learners.values():
        learner.fit(data["train"], valid=data["vali"])
    systems = {name: learner.ranker_ for name, learner in learners.items()}
    comparison = compare(data["test"], systems, MEASURES, baseline="MART")

    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "gradrank"})
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    figure.patch.set_facecolor("white")
    for name, learner in learners.items():
        curve = learner.record_.curves["valid"]["NDCG@10"]
        left.plot(range(1, len(curve) + 1), curve, color=COLOURS[name], label=name)
    left.set(xlabel="trees", ylabel="NDCG@10", title="Validation data, tree by tree")
    left.legend(frameon=False, loc="lower right")

    rows = comparison.rows[::-1]
    for place, row in enumerate(rows):
        middle, low, high = row.test.difference, row.test.low, row.test.high
        reach = [[middle - low], [high - middle]]
        right.errorbar(middle, place, xerr=reach, fmt="o", color=COLOURS[row.system], capsize=3)
        right.annotate(f"p = {row.p_corrected:.2g}", (high, place), (6, -3), textcoords="offset points")
    right.axvline(0, color="#757575", linewidth=1)
    right.set_yticks(range(len(rows)), [str(row.measure) for row in rows])
    right.set(xlabel="LambdaMART − MART", title="Test data, 95 % intervals, p by Holm", ylim=(-0.6, len(rows) - 0.4))
    right.margins(x=0.2)
    right.locator_params(axis="x", nbins=5)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
