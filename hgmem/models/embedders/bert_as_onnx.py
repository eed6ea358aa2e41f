"""A BERT encoder as an ONNX graph, from its weights: token ids and their mask in, unit vectors of the texts out.

The operations are those of the encoder (Devlin et al., 2019, section 3; weights as transformers' `BertModel` names
them), then pooling over tokens and division by the length.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgmem.models.embedders.bert_model import BertModel, NotSupportedError

OPSET = 20  # the first with Gelu
_IR = 10

Array = NDArray[Any]


def as_onnx(model: BertModel) -> bytes:
    """Return the model's graph as a file's content."""
    content: bytes = _Graph(model).built().SerializeToString()
    return content


class _Graph:
    """The graph while it is built: nodes, constants, and the weights that they come from."""

    def __init__(self, model: BertModel) -> None:
        from safetensors.numpy import load_file

        self.model = model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights = {name.removeprefix("bert."): each for name, each in load_file(model.weights).items()}

    def built(self) -> Any:
        """Return the whole model."""
        from onnx import TensorProto, helper

        ids, mask = (
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("ids", "mask")
        )
        out = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", self.model.hidden])
        self._shapes()
        pooled = self._pooled(self._encoded())
        self.nodes.append(helper.make_node("LpNormalization", [pooled], ["vectors"], axis=-1, p=2))
        graph = helper.make_graph(self.nodes, "encoder", [ids, mask], [out], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR)

    def _shapes(self) -> None:
        width = self.model.hidden // self.model.heads
        self._constant("split", np.array([0, 0, self.model.heads, width], np.int64))
        self._constant("joined", np.array([0, 0, self.model.hidden], np.int64))
        self._constant("scale", np.array(width**-0.5, np.float32))
        for axis in (0, 1, 2):
            self._constant(f"axis{axis}", np.array([axis], np.int64))

    def _encoded(self) -> str:
        """Return the vectors of the tokens after the last layer."""
        tokens = self._node("Shape", "ids", start=1, end=2)
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        positions = self._weight("embeddings.position_embeddings.weight")
        places = self._node("Slice", positions, "axis0", tokens, "axis0")
        kind = self._constant("kind", self._array("embeddings.token_type_embeddings.weight")[0])
        sums = self._node("Add", self._node("Add", words, places), kind)
        state = self._normalized(sums, "embeddings.LayerNorm")
        hidden = self._hidden()
        for number in range(self.model.layers):
            state = self._layer(state, hidden, f"encoder.layer.{number}.")
        return state

    def _hidden(self) -> str:
        """Return what is added to scores so that padding gets no attention."""
        padding = self._node("Sub", self._constant("one", np.array(1, np.float32)), self._mask("axis1", "axis2"))
        return self._node("Mul", padding, self._constant("least", np.array(np.finfo(np.float32).min, np.float32)))

    def _layer(self, state: str, hidden: str, name: str) -> str:
        own = f"{name}attention."
        query, key, value = (
            self._node("Reshape", self._linear(state, f"{own}self.{part}"), "split")
            for part in ("query", "key", "value")
        )
        scores = self._node(
            "MatMul",
            self._node("Transpose", query, perm=[0, 2, 1, 3]),
            self._node("Transpose", key, perm=[0, 2, 3, 1]),
        )
        weights = self._node("Softmax", self._node("Add", self._node("Mul", scores, "scale"), hidden), axis=-1)
        seen = self._node("MatMul", weights, self._node("Transpose", value, perm=[0, 2, 1, 3]))
        joined = self._node("Reshape", self._node("Transpose", seen, perm=[0, 2, 1, 3]), "joined")
        attended = self._node("Add", self._linear(joined, f"{own}output.dense"), state)
        state = self._normalized(attended, f"{own}output.LayerNorm")
        wide = self._node("Gelu", self._linear(state, f"{name}intermediate.dense"))
        return self._normalized(
            self._node("Add", self._linear(wide, f"{name}output.dense"), state), f"{name}output.LayerNorm"
        )

    def _pooled(self, state: str) -> str:
        """Return one vector for each text: that of the first token, or the mean of all."""
        if self.model.pooling == "cls":
            return self._node("Gather", state, self._constant("first", np.array(0, np.int64)), axis=1)
        mask = self._mask("axis2")
        summed = self._node("ReduceSum", self._node("Mul", state, mask), "axis1", keepdims=0)
        return self._node("Div", summed, self._node("ReduceSum", mask, "axis1", keepdims=0))

    def _mask(self, *axes: str) -> str:
        """Return the mask as numbers, with these axes added."""
        from onnx import TensorProto

        mask = self._node("Cast", "mask", to=TensorProto.FLOAT)
        for axis in axes:
            mask = self._node("Unsqueeze", mask, axis)
        return mask

    def _linear(self, state: str, name: str) -> str:
        transposed = self._constant(f"{name}.weight", self._array(f"{name}.weight").T)
        return self._node("Add", self._node("MatMul", state, transposed), self._weight(f"{name}.bias"))

    def _normalized(self, state: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("LayerNormalization", state, scale, shift, axis=-1, epsilon=self.model.epsilon)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self._array(name))

    def _constant(self, name: str, value: Array) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def _array(self, name: str) -> Array:
        if name not in self.weights:
            raise NotSupportedError(f"its weights have no {name!r}")
        return self.weights[name].astype(np.float32, copy=False)
