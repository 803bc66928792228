"""ONNX models: trees, nets, linear models, sums of them, expected grades.

``onnx`` takes float32 features. Thresholds are the largest float32 that goes left, so no document goes another way;
leaf values are float32, in which trees are added up. All else is calculated in double precision, and the score is
float32. ``onnx-double`` takes and gives float64 and rounds nothing.

Both have one input ``features`` (documents × features, NaN = missing) and one output ``score`` (one per document).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MissingExtraError, ModelError
from gradrank.models.exchange.onnx_trees import ensemble_attributes, regressor_attributes
from gradrank.models.exchange.plan import (
    FeaturePart,
    GradesPart,
    LinearPart,
    Losses,
    NetPart,
    Part,
    Plan,
    SumPart,
    TreesPart,
    one_ensemble,
    parts_of,
)
from gradrank.models.exchange.registry import Files

INPUT, OUTPUT = "features", "score"
_TREES = "ai.onnx.ml"
# Old enough for most runtimes; trees in double precision need version 5.
_OPSET, _SINGLE_TREES, _DOUBLE_TREES = 17, 3, 5
_FORM = 8


def write(plan: Plan, losses: Losses) -> Files:
    """A model over float32 features."""
    return {"": _Graph(plan, losses, double=False).content()}


def write_double(plan: Plan, losses: Losses) -> Files:
    """A model over float64 features."""
    return {"": _Graph(plan, losses, double=True).content()}


class _Graph:
    """The nodes of the graph as they are made; values between parts are double columns, documents × 1."""

    def __init__(self, plan: Plan, losses: Losses, *, double: bool) -> None:
        try:
            import onnx
        except ImportError:
            raise MissingExtraError("onnx", "onnx") from None
        self.onnx = onnx
        self.plan, self.losses, self.double = plan, losses, double
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.count = 0
        self.wide = ""

    def content(self) -> bytes:
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        part = self.plan.part
        if all(isinstance(inner, TreesPart) for _, inner in parts_of(part)):
            part = one_ensemble(self.plan, self.losses.target)
        score = self.part(part)
        column = score if self.double else self.node("Cast", score, to=kinds.FLOAT)
        self.node("Reshape", column, self.constant(np.array([-1])), output=OUTPUT)
        kind = kinds.DOUBLE if self.double else kinds.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "gradrank",
            [helper.make_tensor_value_info(INPUT, kind, ["documents", len(self.plan.feature_names)])],
            [helper.make_tensor_value_info(OUTPUT, kind, ["documents"])],
            self.constants,
        )
        versions = {"": _OPSET, _TREES: _DOUBLE_TREES if self.double else _SINGLE_TREES}
        opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_FORM, producer_name="gradrank")
        origin = self.plan.origin
        facts = {"gradrank_origin": origin.name, "gradrank_sha256": origin.sha256}
        facts["feature_names"] = "\n".join(self.plan.feature_names)
        helper.set_model_props(model, facts)
        try:
            self.onnx.checker.check_model(model)
            written: bytes = model.SerializeToString()
        except ValueError as error:  # more than 2 GB
            raise ModelError(f"{self.losses.target} cannot hold the model: {error}") from None
        return written

    # ------------------------------------------------------------------ small steps
    def node(self, kind: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        name = output or f"v{self.count}"
        self.count += 1
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def to_double(self, value: str) -> str:
        return self.node("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def features(self, columns: Sequence[int]) -> str:
        """Columns of the input in double precision."""
        if not self.wide:
            self.wide = INPUT if self.double else self.to_double(INPUT)
        if list(columns) == list(range(len(self.plan.feature_names))):
            return self.wide
        return self.node("Gather", self.wide, self.constant(np.asarray(columns, dtype=np.int64)), axis=1)

    # ------------------------------------------------------------------ parts
    def part(self, part: Part) -> str:
        if isinstance(part, TreesPart):
            return self.trees((part,))
        if isinstance(part, GradesPart):
            chances = self.node("Softmax", self.trees(part.ensembles), axis=1)
            return self.node("MatMul", chances, self.constant(part.grades.reshape(-1, 1)))
        if isinstance(part, LinearPart):
            return self.linear(part)
        if isinstance(part, FeaturePart):
            value = self.features([part.column])
            filled = self.node("Where", self.node("IsNaN", value), self.constant(np.array([[part.missing]])), value)
            return self.node("Mul", filled, self.constant(np.array([[float(part.sign)]])))
        if isinstance(part, NetPart):
            return self.net(part)
        return self.sum(part)

    # Weights and scales go into matrices and are no products with one number: ONNX Runtime joins such a product with a
    # matrix product before it, and keeps the number in single precision.
    def sum(self, part: SumPart) -> str:
        columns = [self.part(inner) for _, inner in part.parts]
        side_by_side = self.node("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
        weights = np.array([[weight] for weight, _ in part.parts])
        return self.node("MatMul", side_by_side, self.constant(weights))

    def centered(self, columns: Sequence[int], mean: NDArray[Any], scale: NDArray[Any], log: bool) -> str:
        """x − mean, 0 where x is missing or scale is 0."""
        value = self.features(columns)
        if log:
            magnitude = self.node("Log", self.node("Add", self.node("Abs", value), self.constant(np.array([[1.0]]))))
            value = self.node("Mul", self.node("Sign", value), magnitude)
        unknown = self.node("IsNaN", value)
        if (scale == 0).any():
            unknown = self.node("Or", unknown, self.constant((scale == 0).reshape(1, -1)))
        center = self.constant(mean.reshape(1, -1))
        return self.node("Sub", self.node("Where", unknown, center, value), center)

    def linear(self, part: LinearPart) -> str:
        value = self.centered(part.columns.tolist(), part.mean, part.scale, log=False)
        product = self.node("MatMul", value, self.constant((part.weights / part.scale).reshape(-1, 1)))
        return self.node("Add", product, self.constant(np.array([[part.bias]])))

    def net(self, part: NetPart) -> str:
        value = self.centered(part.columns.tolist(), part.mean, part.scale, part.log)
        scale = np.where(part.scale == 0, 1.0, part.scale)
        for number, (weight, bias) in enumerate(part.layers, 1):
            matrix = (weight / scale if number == 1 else weight).T
            product = self.node("MatMul", value, self.constant(matrix))
            value = self.node("Add", product, self.constant(bias.reshape(1, -1)))
            if number < len(part.layers):
                value = self.node("Tanh" if part.activation == "tanh" else "Relu", value)
        return value

    def trees(self, ensembles: Sequence[TreesPart]) -> str:
        """The sums of ensembles side by side."""
        base = [ensemble.base_score for ensemble in ensembles]
        if not any(ensemble.trees for ensemble in ensembles):
            return self.only_base(base)
        if not self.double:
            attributes = regressor_attributes(ensembles, self.plan.feature_names, self.losses)
            return self.to_double(self.node("TreeEnsembleRegressor", INPUT, domain=_TREES, **attributes))
        arrays = ensemble_attributes(ensembles, self.plan.feature_names, self.losses)
        attributes = {
            key: self.onnx.numpy_helper.from_array(value, key)
            if key in ("nodes_splits", "nodes_modes", "leaf_weights")
            else (value if isinstance(value, int) else value.tolist())
            for key, value in arrays.items()
        }
        scores = self.node("TreeEnsemble", INPUT, domain=_TREES, **attributes)
        return self.node("Add", scores, self.constant(np.array([base])))

    def only_base(self, base: list[float]) -> str:
        """The base scores for every document, where there is no tree."""
        zero = self.node("Mul", self.features([0]), self.constant(np.array([[0.0]])))
        filled = self.node("Where", self.node("IsNaN", zero), self.constant(np.array([[0.0]])), zero)
        return self.node("Add", filled, self.constant(np.array([base])))
