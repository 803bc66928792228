"""Nets that score: the definition by matrices, PyTorch's result, files, wrong input."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.errors import ModelError
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.nets.scaling import Scaling
from gradrank.models.nets.tensor_file import is_tensor_file, tensor_bytes
from gradrank.models.registry import load_ranker

NAMES = ["bm25", "âge", "clicks"]


def net(hidden: tuple[int, ...], *, activation: str = "tanh", log: bool = False, random_state: int = 0) -> NetRanker:
    rng = np.random.default_rng(random_state)
    sizes = [3, *hidden, 1]
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in itertools.pairwise(sizes)]
    scaling = Scaling(rng.normal(size=3), np.array([0.5, 0.0, 2.0]), log)
    return NetRanker(layers, activation=activation, scaling=scaling, feature_names=NAMES, training={"best": 3})


def by_matrices(ranker: NetRanker, X: np.ndarray) -> np.ndarray:
    """The definition: whole matrices, one layer after another."""
    scaling = ranker.scaling
    values = np.sign(X) * np.log1p(np.abs(X)) if scaling.log else X.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        here = (values - scaling.mean) / scaling.scale
    here[:, scaling.scale == 0] = 0.0
    here[np.isnan(here)] = 0.0
    for number, (weight, bias) in enumerate(ranker.layers):
        here = here @ weight.T + bias
        if number < len(ranker.layers) - 1:
            here = np.tanh(here) if ranker.activation == "tanh" else np.maximum(here, 0.0)
    return here[:, 0]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 7), max_size=3), st.sampled_from(["tanh", "relu"]), st.booleans(), st.integers(0, 2**32 - 1)
)
def test_scores_are_the_definition(hidden: list[int], activation: str, log: bool, random_state: int) -> None:
    rng = np.random.default_rng(random_state)
    X = rng.normal(scale=10, size=(5, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    ranker = net(tuple(hidden), activation=activation, log=log, random_state=random_state)
    np.testing.assert_allclose(ranker.predict(X), by_matrices(ranker, X), rtol=1e-9, atol=1e-9)


def test_threads_and_neighbours_change_nothing() -> None:
    ranker = net((7, 4))
    X = np.random.default_rng(1).normal(size=(20_000, 3)).astype(np.float32)
    X[12_345] = X[0]
    scores = ranker.predict(X, n_jobs=1)
    assert scores[12_345] == scores[0]
    assert scores.tobytes() == ranker.predict(X, n_jobs=3).tobytes()
    assert scores[777] == ranker.predict(X[777:778])[0]


def test_it_is_what_pytorch_computes() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in (module[0], module[2])]
    X = np.random.default_rng(2).normal(size=(100, 3)).astype(np.float32)
    # float32 in PyTorch, float64 here.
    expected = module(torch.from_numpy(X)).detach().numpy()[:, 0]
    np.testing.assert_allclose(NetRanker(layers).predict(X), expected, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- linear nets
def test_a_net_without_hidden_nodes_is_linear() -> None:
    ranker = net(())
    linear = ranker.to_linear()
    X = np.random.default_rng(3).normal(size=(50, 3))
    X[0, 0] = np.nan
    assert isinstance(linear, LinearRanker)
    np.testing.assert_allclose(linear.predict(X), ranker.predict(X), rtol=1e-12)
    assert linear.weights[1] == 0.0  # constant in training
    assert linear.training == ranker.training


@pytest.mark.parametrize(("made", "reason"), [(net((2,)), "has hidden nodes"), (net((), log=True), "takes logarithms")])
def test_other_nets_are_not_linear(made: NetRanker, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        made.to_linear()


# ---------------------------------------------------------------- weights that can be moved
def test_the_weight_vector_holds_what_can_change_the_order() -> None:
    ranker = net((2,))
    vector = ranker.weight_vector()
    (first, first_bias), (second, _) = ranker.layers
    assert vector.tolist() == [*first.ravel(), *first_bias, *second.ravel()]
    names = ranker.weight_names()
    assert len(names) == len(vector)
    assert (names[1], names[6], names[8]) == ("âge to node 1.1", "bias of node 1.1", "node 1.1 to output")


def test_a_ranker_with_other_weights() -> None:
    ranker = net((4, 2))
    X = np.random.default_rng(4).normal(size=(9, 3))
    vector = np.random.default_rng(5).normal(size=len(ranker.weight_vector()))
    moved = ranker.with_weight_vector(vector)
    assert moved.weight_vector().tolist() == vector.tolist()
    np.testing.assert_allclose(moved.predict(X), by_matrices(moved, X))
    assert moved.layers[-1][1].tolist() == ranker.layers[-1][1].tolist()
    with pytest.raises(ModelError, match=f"there are 3 weights, expected {len(vector)}"):
        ranker.with_weight_vector([1.0, 2.0, 3.0])


# ---------------------------------------------------------------- files
@pytest.mark.parametrize("name", ["net.json", "net.safetensors"])
@pytest.mark.parametrize("hidden", [(), (3,), (4, 2)])
def test_files_come_back_exactly(tmp_path, name: str, hidden: tuple[int, ...]) -> None:
    ranker = net(hidden, activation="relu", log=True)
    path = tmp_path / name
    ranker.save(path)
    assert is_tensor_file(path.read_bytes()) == name.endswith(".safetensors")
    loaded = load_ranker(path)
    assert isinstance(loaded, NetRanker)
    assert loaded.to_dict() == ranker.to_dict()
    X = np.random.default_rng(6).normal(size=(9, 3))
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()


def test_safetensors_is_readable_without_us(tmp_path) -> None:
    safetensors = pytest.importorskip("safetensors")
    net((3,)).save(tmp_path / "net.safetensors")
    with safetensors.safe_open(tmp_path / "net.safetensors", "numpy") as file:
        assert file.get_tensor("layers.0.weight").shape == (3, 3)
        manifest = json.loads(file.metadata()["gradrank"])
    assert (manifest["kind"], manifest["feature_names"]) == ("net", NAMES)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_file_cut_off_is_refused(tmp_path, share: float) -> None:
    path = tmp_path / "net.safetensors"
    net((30,)).save(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ModelError, match=r"net\.safetensors: is not a"):
        load_ranker(path)


def test_tensors_of_others_are_refused(tmp_path) -> None:
    numpy_format = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "other.safetensors"
    path.write_bytes(numpy_format.save({"a": np.ones(3)}))
    with pytest.raises(ModelError, match="but not of a gradrank model"):
        load_ranker(path)
    path.write_bytes(tensor_bytes({"format": "gradrank-model", "version": 1, "kind": "net"}, {"a": np.ones(3)}))
    with pytest.raises(ModelError, match="not of a whole gradrank net"):
        load_ranker(path)
    made = net((2,)).to_dict()
    path.write_bytes(tensor_bytes({**made, "version": 99, "payload": {"layers": 0, "activation": "tanh", "log": False}},
                                  {"scaling.mean": np.ones(3), "scaling.scale": np.ones(3)}))  # fmt: skip
    with pytest.raises(ModelError, match="has model version 99"):
        load_ranker(path)


# ---------------------------------------------------------------- wrong parts
@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "a scoring net has one output"),
        ([([[1.0], [2.0]], [0.0, 0.0])], "a scoring net has one output"),
        ([([[1.0]], [0.0, 0.0])], "layer 1 has weights of shape"),
        ([([[1.0]], [0.0]), ([[1.0, 2.0]], [0.0])], "layer 2 takes 2 inputs"),
        ([([[np.nan]], [0.0])], "not a finite number"),
    ],
)
def test_layers_that_do_not_fit(layers, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        NetRanker(layers)


def test_other_parts_that_do_not_fit() -> None:
    layers = [([[1.0, 2.0]], [0.0])]
    with pytest.raises(ModelError, match="activation is 'sine'"):
        NetRanker(layers, activation="sine")
    with pytest.raises(ModelError, match="the net takes 2 features, 1 are named"):
        NetRanker(layers, feature_names=["a"])
    with pytest.raises(ModelError, match="scaling is for 3 features"):
        NetRanker(layers, scaling=Scaling(np.zeros(3), np.ones(3)))


# ---------------------------------------------------------------- scaling
def test_scaling_is_mean_and_deviation_of_what_is_known() -> None:
    rng = np.random.default_rng(7)
    X = rng.lognormal(size=(40_000, 4)).astype(np.float32)
    X[:, 1] = 0.1  # constant, though its float32 mean is not 0.1 in float64
    X[:, 2] = np.nan
    X[rng.random(len(X)) < 0.3, 3] = np.nan
    for kind, values in (("standard", X.astype(float)), ("log", np.log1p(X.astype(float)))):
        found = Scaling.learned(X, kind)
        for j in (0, 3):
            known = values[~np.isnan(values[:, j]), j]
            assert found.mean[j] == pytest.approx(known.mean(), rel=1e-12)
            assert found.scale[j] == pytest.approx(known.std(), rel=1e-12)
        assert found.scale[1] == found.scale[2] == 0.0
        scaled = found.apply(X)
        assert scaled.dtype == np.float32
        assert not scaled[:, 1:3].any()
        assert (scaled[np.isnan(X[:, 3]), 3] == 0).all()
        assert scaled[:, 3].sum(dtype=float) == pytest.approx(0, abs=1e-2)
    assert Scaling.learned(X, "none").apply(X[:5])[:, 0].tolist() == X[:5, 0].tolist()


def test_a_constant_feature_stays_silent_when_it_moves_later() -> None:
    scaling = Scaling.learned(np.full((5, 1), 3.0))
    assert scaling.apply(np.array([[1e30], [-1.0]])).tolist() == [[0.0], [0.0]]
