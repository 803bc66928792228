"""Nets: the same steps as plain PyTorch, model choice, schedules, continuation, wrong input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError, ModelError, TrainingError
from gradrank.learners import LambdaRank, ListMLE, ListNet, RankNet, RegressionNet, Step
from gradrank.learners.nets.learner import NetLearner
from gradrank.measures import NDCG, parse_measure
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.module import ModuleRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.registry import load_ranker
from gradrank.objectives import parse_objective

SPLITS = make_splits(40, n_docs=12, n_features=6, random_state=3)
TRAIN, VALI, TEST = SPLITS["train"], SPLITS["vali"], SPLITS["test"]
QUICK: dict[str, Any] = {"epochs": 6, "hidden_layer_sizes": 4, "batch_size": 8}


def fitted(kind: type[NetLearner] = LambdaRank, **options: Any) -> NetLearner:
    return kind(**{**QUICK, **options}).fit(TRAIN, valid=VALI)


def weights(model: NetLearner) -> np.ndarray:
    ranker = model.ranker_
    if isinstance(ranker, LinearRanker):
        return np.append(ranker.weights, ranker.bias)
    assert isinstance(ranker, NetRanker)
    return np.concatenate([part.ravel() for layer in ranker.layers for part in layer])


def curve(model: NetLearner, name: str = "valid") -> list[float]:
    (values,) = model.ranker_.training["curves"][name].values()
    return values


# ---------------------------------------------------------------- the same steps as plain PyTorch
def ranknet_loss(scores: Any, labels: Any) -> Any:
    better = labels[:, None] > labels[None, :]
    return torch.nn.functional.softplus(-(scores[:, None] - scores[None, :]))[better].sum()


def listnet_loss(scores: Any, labels: Any) -> Any:
    return -(torch.softmax(labels, 0) * torch.log_softmax(scores, 0)).sum()


def regression_loss(scores: Any, labels: Any) -> Any:
    return 0.5 * ((scores - labels) ** 2).sum()


@pytest.mark.parametrize(
    ("kind", "loss"), [(RankNet, ranknet_loss), (ListNet, listnet_loss), (RegressionNet, regression_loss)]
)
@pytest.mark.parametrize(("optimizer", "rate"), [("sgd", 1e-3), ("adam", 0.01)])
def test_epochs_are_those_of_autograd(kind: type[NetLearner], loss: Any, optimizer: str, rate: float) -> None:
    options = {"hidden_layer_sizes": 5, "activation": "tanh", "batch_size": "full", "optimizer": optimizer,
               "learning_rate": rate, "weight_decay": 0.01}  # fmt: skip
    start = kind(epochs=1, **options).fit(TRAIN).ranker_  # type: ignore[arg-type]
    after = kind(epochs=1 if optimizer == "adam" else 5, **options).fit(TRAIN).ranker_  # type: ignore[arg-type]
    assert isinstance(start, NetRanker)
    if optimizer == "adam":
        # Adam's moments begin at the first step, so the first step is compared: undo it by the start's own seed.
        start = _first_weights(kind, options)
    net = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    for layer, (weight, bias) in zip((net[0], net[2]), start.layers, strict=True):
        layer.weight.data, layer.bias.data = (torch.tensor(part, dtype=torch.float32) for part in (weight, bias))
    steps = torch.optim.AdamW if optimizer == "adam" else torch.optim.SGD
    updates = steps(net.parameters(), lr=rate, weight_decay=0.01)
    features = torch.from_numpy(Scaling.learned(TRAIN.X).apply(TRAIN.X))
    labels = torch.from_numpy(TRAIN.label())
    for _ in range(1 if optimizer == "adam" else 4):
        updates.zero_grad()
        scores = net(features)[:, 0]
        total = sum(loss(scores[a:b], labels[a:b]) for a, b in zip(TRAIN.indptr[:-1], TRAIN.indptr[1:], strict=True))
        (total / (TRAIN.n_queries if optimizer == "adam" else 1)).backward()
        updates.step()
    expected = np.concatenate([value.detach().numpy().ravel() for value in net.parameters()])
    # float32 sums in another order.
    found = np.concatenate([part.ravel() for layer in after.layers for part in layer])
    if kind is not RegressionNet:
        # Only differences of scores count: the last bias is not learned, where plain Adam follows rounding.
        assert found[-1] == 0.0
        found, expected = found[:-1], expected[:-1]
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-5)


def _first_weights(kind: type[NetLearner], options: dict[str, Any]) -> NetRanker:
    """The random weights that training starts from: those after an epoch with a rate that moves nothing."""
    still = {**options, "learning_rate": 1e-30, "weight_decay": 0.0}
    ranker = kind(epochs=1, **still).fit(TRAIN).ranker_
    assert isinstance(ranker, NetRanker)
    return ranker


@pytest.mark.parametrize(
    "objective",
    [
        "Lambda(NDCG@5)",
        "MAP",
        "Lambda(MRR, cost=sigmoid)",
        "Lambda(NDCG, construction=spring-smooth)",
        "Tiered(NDCG@5, CNDCG@5, weight=0.3)",
        "ListMLE(k=3)",
    ],
)
def test_a_linear_net_moves_along_the_lambdas(objective: str) -> None:
    rng = np.random.default_rng(0)
    train = TRAIN.with_label("clicks", rng.random(TRAIN.n_docs))
    options: dict[str, Any] = {"hidden_layer_sizes": 0, "optimizer": "sgd", "batch_size": "full", "learning_rate": 0.01}
    before, after = (LambdaRank(objective, epochs=n, **options).fit(train) for n in (1, 2))
    scaled = Scaling.learned(train.X).apply(train.X).astype(np.float64)
    scores = scaled @ weights(before)[:-1] + weights(before)[-1]
    lambdas = parse_objective(objective).bind(train).gradients(scores, 1).lambdas.astype(np.float64)
    expected = weights(before)[:-1] + 0.01 * scaled.T @ lambdas
    np.testing.assert_allclose(weights(after)[:-1], expected, rtol=1e-4, atol=1e-6)


def test_schedules_go_by_epochs() -> None:
    scheduled = "Scheduled(Lambda(NDCG), Lambda(MAP, cost=sigmoid), schedule=linear, w0=0, eta=1)"
    options: dict[str, Any] = {"hidden_layer_sizes": 0, "optimizer": "sgd", "batch_size": "full", "learning_rate": 0.01}
    first = LambdaRank("Lambda(NDCG)", epochs=1, **options).fit(TRAIN)
    assert weights(LambdaRank(scheduled, epochs=1, **options).fit(TRAIN)).tolist() == weights(first).tolist()
    scaled = Scaling.learned(TRAIN.X).apply(TRAIN.X).astype(np.float64)
    scores = scaled @ weights(first)[:-1] + weights(first)[-1]
    lambdas = parse_objective("Lambda(MAP, cost=sigmoid)").bind(TRAIN).gradients(scores).lambdas
    expected = weights(first)[:-1] + 0.01 * scaled.T @ lambdas
    second = weights(LambdaRank(scheduled, epochs=2, **options).fit(TRAIN))
    np.testing.assert_allclose(second[:-1], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batch", [1, 7, "full"])
def test_every_query_is_seen_once_an_epoch(batch: int | str) -> None:
    # With one document relevant in each query RankNet has its size - 1 pairs.
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 9, 30)
    labels = np.concatenate([np.eye(size)[0] for size in sizes])
    data = RankingData.from_arrays(rng.normal(size=(sizes.sum(), 3)), labels, group=sizes)
    model = RankNet(hidden_layer_sizes=2, epochs=3, batch_size=batch).fit(data)
    assert model.ranker_.training["effective_pairs"] == {"RankNet": [int((sizes - 1).sum())] * 3}


def test_effective_pairs_are_those_of_the_measure() -> None:
    counts = {
        measure: LambdaRank(f"Lambda({measure})", epochs=1, hidden_layer_sizes=2)
        .fit(TRAIN)
        .ranker_.training["effective_pairs"]
        for measure in ("NDCG", "NDCG@3", "MRR")
    }
    (every,), (top,), (reciprocal,) = (counts[name][name] for name in ("NDCG", "NDCG@3", "MRR"))
    assert every > top > reciprocal > 0


# ---------------------------------------------------------------- what is learned
@pytest.mark.parametrize("kind", [LambdaRank, RankNet, ListNet, ListMLE, RegressionNet])
@pytest.mark.parametrize("hidden", [0, 10, "8,4"])
def test_nets_learn(kind: type[NetLearner], hidden: Any) -> None:
    model = fitted(kind, hidden_layer_sizes=hidden, epochs=30, measure="NDCG@5")
    untrained = NDCG(5).mean(np.random.default_rng(0).random(TEST.n_docs), TEST)
    assert model.score(TEST) > untrained + 0.1
    assert isinstance(model.ranker_, LinearRanker if hidden == 0 else NetRanker)
    assert model.ranker_.training["learner"] == kind.__name__


def test_the_best_epoch_is_kept() -> None:
    # By these λ's the best epoch is not the last one.
    options = {"objective": "Lambda(NDCG@10, normalize=log, gap=true)", "learning_rate": 0.1}
    model = fitted(epochs=30, **options)
    facts = model.ranker_.training
    assert facts["best"] == 1 + int(np.argmax(curve(model))) < facts["grown"] == 30
    assert NDCG(10).mean(model.predict(VALI), VALI) == max(curve(model))
    shorter = fitted(epochs=facts["best"], **options)
    assert weights(shorter).tolist() == weights(model).tolist()


def test_without_validation_the_last_epoch_is_kept() -> None:
    model = LambdaRank(**QUICK).fit(TRAIN)
    assert (model.ranker_.training["best"], model.ranker_.training["grown"]) == (6, 6)


def test_early_stopping() -> None:
    facts = fitted(epochs=300, learning_rate=0.1, early_stopping_rounds=4).ranker_.training
    assert facts["grown"] == facts["best"] + 4 < 300


def test_validation_chooses_the_rate() -> None:
    alone = {rate: fitted(learning_rate=rate) for rate in (1e-9, 0.02)}
    both = fitted(learning_rates="1e-9,0.02")
    assert both.ranker_.training["rates"] == [1e-9] * 6 + [0.02] * 6
    # The second run starts from other random weights than a run of its own.
    assert curve(both)[:6] == curve(alone[1e-9])
    assert both.ranker_.training["best"] == 1 + int(np.argmax(curve(both))) > 6


# ---------------------------------------------------------------- the paper's schedule
def test_the_papers_schedule() -> None:
    chosen = LambdaRank(optimizer="donmez")._chosen()
    assert (chosen["epochs"], chosen["restart"]) == (700, 50)
    assert chosen["learning_rates"] == "1e-07,1e-06,1e-05,0.0001,0.001"
    model = fitted(optimizer="donmez", learning_rate=0.3, epochs=40, batch_size=1)
    train, rates = curve(model, "train"), np.array(model.ranker_.training["rates"])
    falls = np.flatnonzero(np.diff(train) < 0) + 1
    lower = np.flatnonzero(np.diff(rates) < 0)
    np.testing.assert_allclose(rates[lower + 1] / rates[lower], 0.8)
    assert 0 < len(lower) < len(falls)
    assert set(lower) <= set(falls)


def test_weights_are_drawn_anew_when_nothing_moves() -> None:
    # A rate that moves nothing: every start stands still at once.
    model = fitted(optimizer="sgd", learning_rate=1e-30, restart=3, epochs=11)
    values = curve(model)
    assert [len(set(values[at : at + 4])) for at in (0, 4)] == [1, 1]
    assert len({values[0], values[4], values[8]}) == 3
    notes = model.ranker_.training["notes"]
    assert notes[0] == "epoch 5: no new best for 3 epochs: started from new random weights"
    assert model.ranker_.training["best"] == 1 + int(np.argmax(values))


# ---------------------------------------------------------------- rates that explode
def test_an_exploding_rate_is_said_and_lowered() -> None:
    told: list[Step] = []
    model = fitted(
        RegressionNet,
        optimizer="sgd",
        learning_rate=1e3,
        hidden_layer_sizes=0,
        batch_size="full",
        epochs=30,
        callbacks=[told.append],
    )
    facts = model.ranker_.training
    assert facts["notes"][0].startswith("epoch ")
    assert "scores exploded at learning rate 1000: started anew at 100" in facts["notes"][0]
    assert [step.number for step in told] == list(range(1, 31))
    assert facts["notes"] == [f"epoch {step.number}: {step.note}" for step in told if step.note]
    assert facts["rates"][-1] < 1e3
    assert np.isfinite(model.predict(TEST)).all()
    assert max(curve(model)) > 0.6


def test_labels_out_of_all_proportion() -> None:
    data = TRAIN.with_label("label", TRAIN.label() * 1e30)
    with pytest.raises(TrainingError, match="beyond all bounds even at learning rate"):
        RegressionNet(optimizer="sgd", learning_rate=1e9, hidden_layer_sizes=0, epochs=40).fit(data)


# ---------------------------------------------------------------- the same result again
@pytest.mark.parametrize(
    "options", [{}, {"hidden_layer_sizes": 0, "batch_size": "full"}, {"optimizer": "donmez", "learning_rate": 0.01}]
)
def test_threads_change_nothing(options: dict[str, Any]) -> None:
    results = []
    before = torch.get_num_threads()
    for n_jobs, torch_threads in ((1, 1), (2, 1), (2, 2)):
        torch.set_num_threads(torch_threads)
        try:
            model = fitted(n_jobs=n_jobs, **options)
            assert torch.get_num_threads() == torch_threads
        finally:
            torch.set_num_threads(before)
        results.append((weights(model).tobytes(), curve(model)))
    assert results[0] == results[1] == results[2]


def test_seeds_decide_and_leave_others_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = weights(fitted(random_state=1))
    assert torch.equal(torch.rand(3), expected)
    assert weights(fitted(random_state=1)).tolist() == first.tolist()
    assert weights(fitted(random_state=2)).tolist() != first.tolist()


class Stop:
    """Ctrl-C after some epochs."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, step: Step) -> None:
        if step.number == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimizer": "donmez", "learning_rates": "0.001,0.1", "restart": 2, "early_stopping_rounds": 7},
        {
            "optimizer": "sgd",
            "learning_rate": 1e3,
            "hidden_layer_sizes": 0,
            "kind": RegressionNet,
            "batch_size": "full",
        },
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_model(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "state"
    options = {"epochs": 11, "train_measure": True, **options}
    whole = fitted(**options)
    cut = fitted(**options, checkpoint=path, checkpoint_every=3, callbacks=[Stop(8)])
    assert cut.ranker_.training["interrupted"]
    assert cut.ranker_.training["grown"] == 8
    assert curve(cut) == curve(whole)[:8]
    again = fitted(**options, checkpoint=path, checkpoint_every=3)
    assert weights(again).tobytes() == weights(whole).tobytes()
    for fact in ("curves", "best", "grown", "rates"):
        assert again.ranker_.training[fact] == whole.ranker_.training[fact]
    assert again.ranker_.training.get("notes") == whole.ranker_.training.get("notes")


def test_more_epochs_may_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "state"
    fitted(epochs=4, checkpoint=path, checkpoint_every=1)
    numbers: list[int] = []
    longer = fitted(epochs=9, checkpoint=path, callbacks=[lambda step: numbers.append(step.number)])
    assert numbers == [5, 6, 7, 8, 9]
    assert weights(longer).tobytes() == weights(fitted(epochs=9)).tobytes()


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    fitted(checkpoint=path)
    kept = path.read_bytes()
    with pytest.raises(TrainingError, match=r"belongs to another run \(learning_rate differ\)"):
        fitted(checkpoint=path, learning_rate=0.5)
    with pytest.raises(TrainingError, match=r"belongs to another run \(data differ\)"):
        LambdaRank(**QUICK, checkpoint=path).fit(TEST, valid=VALI)
    with pytest.raises(TrainingError, match=r"belongs to another run \(hidden_layer_sizes differ\)"):
        fitted(checkpoint=path, hidden_layer_sizes=7)  # its weights fit no layer of that size
    assert path.read_bytes() == kept
    middle = len(kept) // 2
    for damaged in (kept[:100], b"", b"[" * 100_000, kept[:middle] + bytes([kept[middle] ^ 1]) + kept[middle + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(TrainingError, match="is not a checkpoint that can be read"):
            fitted(checkpoint=path)


def test_ctrl_c_keeps_the_best() -> None:
    cut = fitted(epochs=1000, learning_rate=0.1, callbacks=[Stop(12)])
    assert cut.ranker_.training["interrupted"]
    assert weights(cut).tobytes() == weights(fitted(epochs=12, learning_rate=0.1)).tobytes()
    with pytest.raises(KeyboardInterrupt):
        fitted(callbacks=[Stop(0)], module=_Interrupting())


class _Interrupting(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, X: Any) -> Any:
        raise KeyboardInterrupt


# ---------------------------------------------------------------- modules of one's own
class Gated(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.value = torch.nn.Linear(n_features, 8)
        self.gate = torch.nn.Linear(n_features, 8)
        self.drop = torch.nn.Dropout(0.2)

    def forward(self, X: Any) -> Any:
        return self.drop(self.value(X) * torch.sigmoid(self.gate(X))).sum(dim=1)


def test_a_module_of_ones_own(tmp_path: Path) -> None:
    model = fitted(module=Gated, epochs=20)
    again = fitted(module=Gated, epochs=20)
    assert model.score(TEST) > 0.6
    assert model.predict(TEST).tobytes() == again.predict(TEST).tobytes()
    assert max(curve(model)) == NDCG(10).mean(model.predict(VALI), VALI)
    many, before = np.tile(TEST.X, (60, 1)), torch.get_num_threads()
    assert model.ranker_.predict(many, n_jobs=1).tobytes() == model.ranker_.predict(many, n_jobs=2).tobytes()
    assert torch.get_num_threads() == before
    path = tmp_path / "gated.safetensors"
    model.ranker_.save(path)
    loaded = ModuleRanker.load(path, Gated(6))
    assert loaded.predict(TEST).tobytes() == model.predict(TEST).tobytes()
    assert loaded.training["best"] == model.ranker_.training["best"]
    with pytest.raises(ModelError, match=r"holds the weights of a .*Gated: ModuleRanker.load takes it"):
        load_ranker(path)
    with pytest.raises(ModelError, match="do not fit this module"):
        ModuleRanker.load(path, Gated(5))


def test_a_given_module_is_where_training_starts_and_stays_as_it_was() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    still = LambdaRank(module=module, epochs=1, learning_rate=1e-30).fit(TRAIN)
    scaled = torch.from_numpy(Scaling.learned(TRAIN.X).apply(TRAIN.X))
    np.testing.assert_allclose(still.predict(TRAIN), module(scaled).detach().numpy()[:, 0], rtol=1e-6)
    LambdaRank(module=module, epochs=3, restart=1).fit(TRAIN, valid=VALI)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_modules_that_do_not_score() -> None:
    with pytest.raises(ModelError, match=r"the module gives \(480, 2\) for 480 documents"):
        LambdaRank(module=torch.nn.Linear(6, 2), batch_size="full").fit(TRAIN)
    with pytest.raises(TrainingError, match=r"module gives str, expected a torch\.nn\.Module"):
        LambdaRank(module=lambda n_features: "net").fit(TRAIN)


# ---------------------------------------------------------------- data with faults
def test_constant_and_missing_features_and_queries_of_one_document() -> None:
    rng = np.random.default_rng(2)
    sizes = np.array([1, 1, 9, 12, 1, 30, 7] * 4)
    X = rng.normal(size=(sizes.sum(), 5)).astype(np.float32)
    labels = (X[:, 0] > 0).astype(float) + (X[:, 0] > 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1], X[:, 2] = 7.0, np.nan
    data = RankingData.from_arrays(X, labels, group=sizes)
    for hidden in (0, 5):
        model = LambdaRank(hidden_layer_sizes=hidden, epochs=30, batch_size=4).fit(data, valid=data)
        assert model.score(data) > 0.9
        moved = X.copy()
        moved[:, 1:3] = 1e6
        assert model.predict(moved).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [(np.ones(TRAIN.n_docs), "one label only"), (np.full(TRAIN.n_docs, np.nan), "no document of the training data")],
)
def test_nothing_to_learn(labels: np.ndarray, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        LambdaRank(**QUICK).fit(TRAIN.with_label("label", labels))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_layer_sizes": -1}, "hidden_layer_sizes is -1"),
        ({"hidden_layer_sizes": "8,x"}, "hidden_layer_sizes is '8,x'"),
        ({"hidden_layer_sizes": 2.5}, "hidden_layer_sizes is 2.5"),
        ({"activation": "sine"}, "activation is 'sine', expected relu or tanh"),
        ({"scaling": "rank"}, "scaling is 'rank', expected standard, log or none"),
        ({"epochs": 0}, "epochs is 0, expected a whole number of 1 or more"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0, expected a positive number"),
        ({"learning_rates": "a,b"}, "learning_rates is 'a,b', expected positive numbers"),
        ({"learning_rate": 0.1, "learning_rates": "0.1"}, "not both"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": "half"}, "batch_size is 'half', expected a whole number of 1 or more, or full, or query"),
        ({"optimizer": "lbfgs"}, "optimizer is 'lbfgs', expected adam, sgd or donmez"),
        ({"weight_decay": -1}, "weight_decay is -1"),
        ({"restart": -3}, "restart is -3"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0"),
        ({"device": "tpu-thing"}, "device is 'tpu-thing', expected auto, cpu or cuda"),
        ({"checkpoint": "state", "checkpoint_every": 0}, "checkpoint_every is 0"),
        ({"objective": "NDGC"}, "there is no measure 'NDGC'"),
    ],
)
def test_parameters_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GradrankError, match=message):
        fitted(**options)


def test_learners_of_one_loss_say_so() -> None:
    with pytest.raises(TrainingError, match="RankNet learns by RankNet, not by ListNet; LambdaRank takes it"):
        RankNet("ListNet").fit(TRAIN)
    assert str(ListMLE(k=3)._objective()) == "ListMLE(k=3)"
    with pytest.raises(TrainingError, match="give one of the two"):
        ListMLE("ListMLE(k=4)", k=3).fit(TRAIN)
    with pytest.raises(TrainingError, match="several learning rates need validation data"):
        LambdaRank(learning_rates=(0.1, 0.2)).fit(TRAIN)


def test_cuda_that_is_not_there() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    with pytest.raises(TrainingError, match="PyTorch finds no CUDA here"):
        fitted(device="cuda")


def test_scikit_learn_habits() -> None:
    model = ListMLE(k=5, hidden_layer_sizes="8,4", learning_rate=0.02)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert (copy.k, copy.hidden_layer_sizes) == (5, "8,4")
    arrays = LambdaRank(**QUICK).fit(TRAIN.X, TRAIN.label(), qid=TRAIN.query_of_row())
    assert weights(arrays).tolist() == weights(LambdaRank(**QUICK).fit(TRAIN)).tolist()


def test_the_measure_that_chooses() -> None:
    assert fitted(measure="MAP")._measure() == parse_measure("MAP")
    assert fitted(RankNet)._measure() == parse_measure("NDCG@10")


# ---------------------------------------------------------------- without PyTorch
def test_torch_is_loaded_for_training_only(tmp_path: Path) -> None:
    fitted().ranker_.save(tmp_path / "net.json")
    script = f"""
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoTorch())
from gradrank.errors import MissingExtraError
from gradrank.learners import LambdaRank
from gradrank.models.registry import load_ranker
import numpy as np
print(load_ranker({str(tmp_path / "net.json")!r}).predict(np.zeros((1, 6))).shape)
try:
    LambdaRank().fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
except MissingExtraError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    shape, message = result.stdout.splitlines()
    assert shape == "(1,)"
    assert message.endswith("needs the package torch: pip install 'gradrank[nets]'")


def test_pairs_of_each_label_source_are_told() -> None:
    data = make_splits(20, n_docs=8, n_features=4, random_state=3, clicks=True)["train"]
    told: list[object] = []

    class Listener:
        def begin(self, pairs: object) -> None:
            told.append(pairs)

        def __call__(self, _step: object) -> None:
            pass

    learner = LambdaRank("Tiered(NDCG, CNDCG(label=clicks), weight=0.2)", epochs=1, callbacks=(Listener(),))
    facts = learner.fit(data).ranker_.training["pairs"]
    assert [fact["source"] for fact in facts] == ["label", "clicks"]
    labels = data.label()
    expected = sum(
        int((labels[a:b, None] > labels[None, a:b]).sum())
        for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)
    )
    assert facts[0]["pairs"] == expected
    assert len(told) == 1
