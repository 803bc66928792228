"""Train two rankers, compare them with the best single feature, and write a report.

Run it with ``make demo`` or ``python examples/demo.py``; everything goes to ./demo/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from gradrank import (
    MART,
    FeatureRanker,
    LambdaMART,
    RankingData,
    compare,
    evaluate,
    headline,
    make_splits,
    write_column,
    write_data,
    write_report,
)

FOLDER = Path("demo")
QUERIES, DOCUMENTS, FEATURES, SEED = 1_000, 50, 50, 1
SETTINGS = {"n_estimators": 200, "num_leaves": 15, "learning_rate": 0.2, "random_state": SEED}
TARGET = "NDCG@10"
MEASURES = [TARGET, "MAP", "MRR"]

console = Console()


def best_feature(data: RankingData) -> FeatureRanker:
    """The feature that ranks best by itself, upwards or downwards."""
    names = data.feature_names
    rankers = {f"{sign}{name}": FeatureRanker(name, sign, feature_names=names) for name in names for sign in (1, -1)}
    means = evaluate(data, rankers, TARGET).means()
    return rankers[max(rankers, key=lambda ranker: means[ranker][TARGET])]


def say_progress(step: Any) -> None:
    """Say the measure on the validation data every 50 trees."""
    if step.number % 50 == 0:
        console.print(f"  {step.number:4} trees  {TARGET} {step.values['valid'][TARGET]:.4f}  {step.seconds:5.1f} s")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)

    console.print(f"making {QUERIES:,} queries × {DOCUMENTS} documents × {FEATURES} features")
    data = make_splits(QUERIES, n_docs=DOCUMENTS, n_features=FEATURES, random_state=SEED)
    train, vali, test = data["train"], data["vali"], data["test"]
    for name, part in data.items():
        write_data(part, FOLDER / f"{name}.txt")

    models = {"best feature": best_feature(vali)}
    for name, learner in {
        "MART": MART(measure=TARGET, **SETTINGS, callbacks=[say_progress]),
        "LambdaMART": LambdaMART(TARGET, **SETTINGS, callbacks=[say_progress]),
    }.items():
        console.print(f"training {name}")
        models[name] = learner.fit(train, valid=vali).ranker_

    files = {name: FOLDER / name.lower().replace(" ", "-") for name in models}
    for name, model in models.items():
        model.save(files[name].with_suffix(".json"))
        write_column(model.predict(test), files[name].with_suffix(".scores.txt"))

    evaluation = evaluate(test, models, MEASURES)
    comparison = compare(evaluation, baseline="best feature")
    given = " ".join(f"--model '{name}={file}.json'" for name, file in files.items())
    write_report(
        FOLDER / "report.html",
        title="LambdaMART, MART and the best single feature on artificial data",
        evaluation=evaluation,
        comparison=comparison,
        models={name: models[name] for name in ("LambdaMART", "MART")},
        data=data,
        facts={"Best feature": models["best feature"].feature},
        commands=[
            "python examples/demo.py",
            f"gradrank report {FOLDER}/test.txt {given} "
            + " ".join(f"-m {measure}" for measure in MEASURES)
            + f" -o {FOLDER}/report.html",
        ],
    )
    console.print(evaluation.table().to_rich())
    verdict = headline(evaluation, comparison)
    console.print("\n".join((verdict.sentence, *verdict.details)), highlight=False)
    console.print(
        f"\nmodels, scores and data are in {FOLDER}/; the report is {FOLDER / 'report.html'}", highlight=False
    )


if __name__ == "__main__":
    main()
