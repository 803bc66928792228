"""A valid file of every form that models are read from."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import catboost
import lightgbm
import pandas
import xgboost

from gradrank.models.exchange.registry import EXPORTS
from gradrank.models.feature import FeatureRanker
from gradrank.models.trees.ensemble import TreeEnsemble
from tests.support.export_matrix import booster_trees, documents, truth
from tests.support.rankers import example_rankers, trained_booster


@cache
def model_files() -> dict[str, bytes]:
    """Contents by name; small, so that a change in a random place matters."""
    folder = Path(tempfile.mkdtemp())
    found: dict[str, bytes] = {}
    for kind, ranker in example_rankers().items():
        ranker.save(folder / "model.json")
        found[f"gradrank {kind}"] = (folder / "model.json").read_bytes()
    example_rankers()["net"].save(folder / "net.safetensors")
    found["gradrank safetensors"] = (folder / "net.safetensors").read_bytes()
    found["lightgbm"] = trained_booster(cat_smooth=1).model_to_string().encode()
    # Cities are known by their names.
    frame = pandas.DataFrame({"age": range(60), "city": pandas.Categorical(["Ulm", "Bonn", "Jena"] * 20)})
    fixed_trees = {"verbose": -1, "num_threads": 1, "num_leaves": 4, "min_data_per_group": 1, "min_data_in_leaf": 1}
    named = lightgbm.train(fixed_trees, lightgbm.Dataset(frame, [1.0, 2.0, 5.0] * 20), 2)
    found["lightgbm pandas"] = named.model_to_string().encode()
    TreeEnsemble.from_lightgbm(named).save(folder / "model.json")
    found["gradrank categories"] = (folder / "model.json").read_bytes()
    X = documents(200, 1)
    booster = xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(X, truth(X)), 2)
    for form in ("json", "ubj"):
        found[f"xgboost {form}"] = bytes(booster.save_raw(form))
    logistic = {"nthread": 1, "max_depth": 2, "booster": "dart", "rate_drop": 0.5, "objective": "binary:logistic"}
    booster = xgboost.train(logistic, xgboost.DMatrix(X, truth(X) > 0), 2)
    found["xgboost dart"] = bytes(booster.save_raw("json"))
    fixed = {"iterations": 2, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    for policy in ("SymmetricTree", "Lossguide"):
        model = catboost.CatBoostRegressor(grow_policy=policy, **fixed).fit(X, truth(X))
        model.save_model(str(folder / "model.json"), format="json")
        value = json.loads((folder / "model.json").read_text())
        # Most of the file describes the training, and is not read.
        del value["model_info"]
        found[f"catboost {policy}"] = json.dumps(value).encode()
    # Not trained by gradrank: with checked indices, compiling its learners would take a minute.
    trees = booster_trees(num_leaves=7, use_missing=False).truncate(2)
    for form in ("ranklib", "onnx", "onnx-double"):
        path = folder / f"model{EXPORTS[form].suffix}"
        trees.export(path, form)
        found[form] = path.read_bytes()
    FeatureRanker("f3", feature_names=["f1", "f2", "f3"]).export(folder / "line.txt", "ranklib")
    found["ranklib line"] = (folder / "line.txt").read_bytes()
    return found
