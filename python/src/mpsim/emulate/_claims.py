"""Products that arrive at the dispatcher: which operand is what, and the call of the library that computes them.

A handler gets the arguments of the operator and gives what the operator gives. None of them calls torch's product.

So operands may differ in dtype: the handler rounds each to the format of its slot and chooses the dtype of the result; autograd casts gradients
to the dtype of what they belong to. Nothing inserts casts into the model.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from .._product import View
from .._formats import Format
from ._paths import Several
from ._plans import SLOTS
from ._products import FORMATS, Products, Record, dtype_of
from ._roles import ACT, GRAD, WEIGHT
from ._torchcpu import known, natively, product

FLOATS = frozenset((torch.float32, torch.bfloat16, torch.float16, torch.float64))
# the slots of the gradients of a product of two activations, and what becomes of them
VECTORS = ("MvBackward0", "AddmvBackward0", "DotBackward0", "VdotBackward0")
PAIR = {"fprop": ("act", "weight", "out"), "left": ("agrad", "weight", "dgrad"), "right": ("agrad", "act", "dgrad")}


class Matrices:
    """mm, bmm and all that is made of them."""

    def __init__(self, core: Any, products: Products) -> None:
        self.core, self.products = core, products
        self.roles, self.paths = core.roles, core.paths

    # ---- which product it is ----

    def is_gradient(self, *tensors: Any) -> bool:
        return bool(self.roles.largest(tensors) == GRAD and self.paths.back)

    def record(self, form: str, attention: bool, rank: int) -> Record:
        """A product of a forward pass."""
        place = self.paths.here()
        number = place.number("product")
        name = place.path + (f"#{place.call}" if place.call else "") + (f".{number}" if number else "")
        record = Record(place.path, name, form, attention, rank, not self.paths.counts())
        return record

    def _side(self, record: Optional[Record], a: Any, b: Any, first: bool) -> str:
        """Of a product with a gradient, whose gradient it gives: of the `left` operand of the forward product (in the slot act) or of the
        `right` one (in the slot weight). first: the gradient is the first operand."""
        other = b if first else a
        if record is None:
            return "left" if self.roles.of(other) == WEIGHT else "right"
        key = other.untyped_storage()._cdata
        if record.left != record.right:
            if key == record.right:
                return "left"
            if key == record.left:
                return "right"
        if record.form == "linear" and record.left != record.right:
            return "left" if self.roles.of(other) == WEIGHT else "right"
        # one tensor twice, or a tensor that a recomputation has made again: autograd's formulas are grad mat2^T or mat2 grad^T of the left
        # operand, mat1^T grad or grad^T mat1 of the right one
        upright = self._upright(a if first else b, record)
        left = first == upright
        return ("right" if left else "left") if record.swapped else ("left" if left else "right")

    @staticmethod
    def _upright(grad: Any, record: Record) -> bool:
        rows, columns = grad.shape[-2:]
        if rows != columns and record.shape:
            return (rows, columns) == tuple(record.shape[-2:])
        return bool(grad.stride(-1) == 1 or grad.stride(-2) != 1)

    # ---- one product, or a stack of them ----

    def multiply(self, a: Any, b: Any, bias: Any = None, record: Optional[Record] = None, **terms: Any) -> Any:
        """a b, of the last two dimensions of both. bias: a row, entered in the epilogue. factor, add, add_factor: the result is
        RN(factor a b + add_factor add), add being a tensor of the result's shape."""
        ra, rb = self.roles.of(a), self.roles.of(b)
        if self.core.as_torch:
            return self._as_torch(a, b, ra, rb, bias, terms)
        if ra == GRAD or rb == GRAD:
            if self.paths.back:
                return self._gradient(a, b, ra == GRAD, record, terms)
            ra, rb = min(ra, ACT), min(rb, ACT)
            if self.paths.outside():
                self.core.note("products of gradients outside of modules and backward passes, which no product of a forward pass has made, are "
                               "computed as those of activations")
        return self._forward(a, b, ra, rb, bias, record, terms)

    def _forward(self, a: Any, b: Any, ra: int, rb: int, bias: Any, record: Optional[Record], terms: dict[str, Any]) -> Any:
        weighs = ra == WEIGHT or rb == WEIGHT
        if record is None:
            record = self.record("linear" if weighs else "pair", not weighs, 2)
            self.paths.mark(record)
        record.swapped = ra == WEIGHT and rb != WEIGHT
        act, weight = (b, a) if record.swapped else (a, b)
        record.left, record.right = act.untyped_storage()._cdata, weight.untyped_storage()._cdata
        record.dtypes = act.dtype, weight.dtype
        tag = self.roles.tag(weight)
        record.param = tag.param if tag is not None else None
        *rows, _ = a.shape  # a slice of a torch.Size costs half a microsecond
        record.shape = (*rows, b.shape[-1])
        format = self.products.placement(record, "fprop").format["out"]
        out = torch.empty(record.shape, dtype=dtype_of(format), device=a.device)
        self._run(record, "fprop", a, b, out, not record.swapped, (False, False), SLOTS["fprop"], format, bias=bias, **terms)
        self.roles.put(out, max(ra, rb))
        return out

    @staticmethod
    def _among(records: Several, grad: Any, other: Any) -> Any:
        """Which product of a function a gradient is of: one that has read the other operand, the least used first; else one whose result has
        the shape of the gradient; else the first."""
        key, shape = other.untyped_storage()._cdata, {*grad.shape[-2:]}
        read = [r for r in records if isinstance(r, Record) and key in (r.left, r.right)]
        alike = [r for r in read or records if isinstance(r, Record) and {*r.shape[-2:]} == shape]
        among = alike or read or records
        found = min(among, key=lambda r: getattr(r, "gradients", 0))
        if isinstance(found, Record) and key == found.left:
            found.gradients += 1
        return found

    def _gradient(self, a: Any, b: Any, first: bool, record: Optional[Record], terms: dict[str, Any]) -> Any:
        if record is None:
            record = self.paths.found()
        if isinstance(record, Several):
            record = self._among(record, a if first else b, b if first else a)
        if not isinstance(record, Record):
            record = self.record("linear", False, 2)
            side = self._side(None, a, b, first)
            self.core.note("products of gradients that no product of a forward pass has made: whose gradients they are is told by roles alone")
        else:
            side = self._side(record, a, b, first)
        kind = "dgrad" if side == "left" else "wgrad"
        slots = SLOTS[kind]
        if record.form == "pair":
            kind, slots = "dgrad", PAIR[side]
        format = self.products.placement(record, kind).format[slots[2]]
        if kind == "wgrad" and record.param is not None:  # a shared parameter's gradient is as its first owner has it
            format = record.param.placement.format["wgrad"]
        dtype = record.dtypes[0 if side == "left" else 1]
        if not format.within(FORMATS[dtype]):  # as an override has it: autograd rounds it to the dtype of what it is the gradient of
            dtype = dtype_of(format)
        *rows, _ = a.shape
        out = torch.empty((*rows, b.shape[-1]), dtype=dtype, device=a.device)
        self._run(record, kind, a, b, out, first, (False, True) if side == "left" else (True, True), slots, format, **terms)
        self.roles.put(out, GRAD)
        return out

    def _run(self, record: Record, kind: str, a: Any, b: Any, out: Any, first: bool, transposed: tuple[bool, bool], slots: tuple[str, str, str],
             format: Format, add: Any = None, **terms: Any) -> None:
        """out = a b; first: a is in the first slot, else b is, and all is computed transposed."""
        left, right, to = View.of(a), View.of(b).t(), View.of(out)
        added = None if add is None else View.of(self._added(record, kind, add).expand(out.shape))
        if not first:
            left, right, to, added = right, left, to.t(), None if added is None else added.t()
        self.products.run(record, kind, left, right, to, transposed, slots=slots, to=format, add=added, **terms)

    def _added(self, record: Record, kind: str, add: Any) -> Any:
        """What is added to a product, in the format that operands of its role have."""
        tag, format = self.roles.tag(add), self.products.placement(record, kind).format
        if tag is not None and tag.param is not None:
            return self.core.enter_weight(add, tag.param, format["weight"])
        return self.core.to_format(add, format["agrad" if self.is_gradient(add) else "act"])

    def _as_torch(self, a: Any, b: Any, ra: int, rb: int, bias: Any, terms: dict[str, Any]) -> Any:
        """torch's own product, in the dtypes that come."""
        core, roles = self.core, self.roles
        why = known(core.arch.row, a, b)
        weighs = WEIGHT in (ra, rb)
        found = None if self.paths.forward else self.paths.found()
        record = found if isinstance(found, Record) else self.record("linear" if weighs else "pair", not weighs, 2)
        if self.paths.forward:
            record.left, record.right = a.untyped_storage()._cdata, b.untyped_storage()._cdata
            self.paths.mark(record)
        if why is None:
            out = product(core, record, core.arch.row, a, b, bias, terms)
        else:
            core.ran_natively(record, why)
            out = natively(a, b, bias, terms)
        roles.put(out, max(ra, rb))
        return out

    # ---- the operators ----

    def mm(self, a: Any, b: Any) -> Any:
        return self.multiply(a, b)

    def bmm(self, a: Any, b: Any) -> Any:
        return self.multiply(a, b)

    def addmm(self, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        row = c.dim() == 1 and c.shape[0] == b.shape[-1] or c.dim() == 2 and c.shape[0] == 1 and a.shape[0] != 1
        ra, rb = self.roles.of(a), self.roles.of(b)
        if beta == 1 and alpha == 1 and row and ra != WEIGHT and (ra != GRAD and rb != GRAD or not self.paths.back):
            return self.multiply(a, b, c.reshape(-1))
        return self._combined(c, a, b, beta, alpha)

    def baddbmm(self, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return self._combined(c, a, b, beta, alpha)

    def addbmm(self, c: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        n, m, k = a.shape
        return self._combined(c, a.permute(1, 0, 2).reshape(m, n * k), b.reshape(n * k, b.shape[-1]), beta, alpha)

    def _combined(self, c: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
        """RN(alpha a b + beta c), each operation in binary32 before the one rounding."""
        if beta == 0:
            return self.multiply(a, b, factor=float(alpha))
        out = self.multiply(a, b, factor=float(alpha), add=c, add_factor=float(beta))
        self.roles.put(out, self.roles.of(c))
        return out

    def mv(self, a: Any, x: Any) -> Any:
        return self.multiply(a, x.unsqueeze(-1)).squeeze(-1)

    def dot(self, x: Any, y: Any) -> Any:
        return self.multiply(x.unsqueeze(0), y.unsqueeze(-1)).reshape(())

    def addmv(self, c: Any, a: Any, x: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return self._combined(c.unsqueeze(-1) if c.dim() else c, a, x.unsqueeze(-1), beta, alpha).squeeze(-1)

    # ---- products that autograd writes as elementwise ones ----

    def is_outer(self, given: list[Any]) -> bool:
        """Whether `mul` is a gradient of mv, addmv or dot, where autograd multiplies a column with a row, or a row with a number."""
        return (len(given) == 2 and not self.paths.forward and not self.core.as_torch and self.roles.of(given[0]) == GRAD
                and self.paths.node_name() in VECTORS)

    def outer(self, grad: Any, x: Any) -> Any:
        rows, columns = grad.numel(), x.numel()
        return self.multiply(grad.reshape(rows, 1), x.reshape(1, columns)).reshape((*grad.shape[:-1], columns))


class Claims:
    """Operators by name."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.products = Products(core)
        self.matrices = m = Matrices(core, self.products)
        self.table: dict[str, Callable[..., Any]] = {
            "aten::mm": m.mm, "aten::bmm": m.bmm, "aten::addmm": m.addmm, "aten::baddbmm": m.baddbmm, "aten::addbmm": m.addbmm,
            "aten::mv": m.mv, "aten::dot": m.dot, "aten::vdot": m.dot, "aten::addmv": m.addmv,
        }
        from ._attention import Attention
        from ._convolutions import Convolutions
        from ._grouped import Grouped

        for part in (Attention(core, m), Convolutions(core, m), Grouped(core, m)):
            self.table.update(part.table)
        self.table.update({name + "_": handler for name, handler in self.table.items() if name[6:9] in ("add", "bad")})


# Operators with a product inside that nothing here claims: an error in a strict emulation, else native and in the report.
HIDDEN = frozenset("aten::" + name for name in (
    "_cdist_forward", "_euclidean_dist", "_cdist_backward", "_int_mm", "_scaled_mm", "_scaled_grouped_mm", "_weight_int4pack_mm",
    "_weight_int8pack_mm", "_transformer_encoder_layer_fwd", "_native_multi_head_attention", "_triton_multi_head_attention",
    "_efficient_attention_forward", "_flash_attention_forward", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward",
    "linalg_matrix_exp", "_linalg_solve_ex", "linalg_inv_ex", "_linalg_svd", "linalg_qr",
    "linalg_cholesky_ex", "linalg_householder_product", "_linalg_eigh", "linalg_eig", "linalg_lu_factor_ex", "linalg_lu",
    "linalg_lstsq", "triangular_solve", "linalg_solve_triangular", "cholesky_inverse", "ormqr", "geqrf", "_convert_weight_to_int4pack",
    "_sparse_addmm", "_sparse_mm", "sspaddmm", "hspmm", "_cslt_sparse_mm", "_sparse_semi_structured_mm", "_sparse_semi_structured_linear",
    "_sparse_sparse_matmul", "_compute_linear_combination", "_addmm_activation", "_foreach_mm", "_scaled_mm_v2", "_scaled_grouped_mm_v2",
    "_dyn_quant_matmul_4bit", "_weight_int4pack_mm_for_cpu", "_linalg_det", "_linalg_slogdet", "_linalg_eigvals", "linalg_lu_solve",
    "linalg_ldl_factor_ex", "linalg_ldl_solve", "cholesky_solve", "_cholesky_solve_helper", "linear_backward", "matmul_backward", "conv_tbc",
    "_slow_conv2d_forward", "_slow_conv2d_backward", "slow_conv3d_forward", "slow_conv_dilated2d", "slow_conv_dilated3d", "slow_conv_transpose2d",
    "slow_conv_transpose3d", "_nnpack_spatial_convolution", "conv_depthwise3d", "mkldnn_convolution", "mkldnn_linear", "mkldnn_linear_backward",
    "mkldnn_linear_backward_input", "mkldnn_linear_backward_weights", "quantized_gru", "quantized_lstm",
    "_cudnn_rnn", "_cudnn_rnn_backward", "cudnn_convolution", "cudnn_convolution_transpose", "cudnn_convolution_relu", "cudnn_convolution_add_relu",
    "_conv_depthwise2d", "_efficient_attention_backward", "_flash_attention_backward", "_cudnn_attention_forward", "_cudnn_attention_backward",
    "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_cudnn_attention_backward", "_mixed_dtypes_linear",
    "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_fused_attention_overrideable_backward", "_triton_scaled_dot_attention"))
