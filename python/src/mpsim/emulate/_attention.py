"""Attention as torch hands it over whole: scaled_dot_product_attention and its gradients, materialised as `mpsim train` has it.

    S = scores(Q K^T);  P = softmax(scale S + mask);  O = context(P V)
    dP = dO V^T;  dV = P^T dO;  dS = (P (dP - sum of P dP)) scale;  dQ = dS K;  dK = dS^T Q

The layers are named PATH.scores, PATH.softmax and PATH.context. Heads that share keys have their gradients added in their order.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from .. import _attention as tiles
from .._product import View
from .._formats import Format
from ._claims import PAIR, Matrices
from ._plans import BINARY32
from ._products import DTYPES, Record, dtype_of
from ._roles import ACT, GRAD


def autocast(core: Any) -> list[Callable[[], None]]:
    """scaled_dot_product_attention of operands whose dtypes differ, as those of rotary embeddings: under a policy as torch.autocast they are cast as
    torch.autocast casts them. On a device one with dropout arrives in parts, as it does on a CPU. What is returned undoes that."""
    functional = torch.nn.functional
    run = functional.scaled_dot_product_attention

    def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
        several = query, key, value, *(() if attn_mask is None or not attn_mask.is_floating_point() else (attn_mask,))
        if core.listed and len({x.dtype for x in several}) > 1:
            dtype = DTYPES[core.plans.plan.compute.name]
            query, key, value = (x.to(dtype) for x in several[:3])
            attn_mask = attn_mask if len(several) == 3 else attn_mask.to(dtype)
        if core.home.device is None or not (args[0] if args else kwargs.get("dropout_p", 0.0)):
            return run(query, key, value, attn_mask, *args, **kwargs)
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.MATH):
            return run(query, key, value, attn_mask, *args, **kwargs)

    functional.scaled_dot_product_attention = attention
    return [lambda: setattr(functional, "scaled_dot_product_attention", run)]


class Attention:
    def __init__(self, core: Any, matrices: Matrices) -> None:
        self.core, self.products, self.matrices = core, matrices.products, matrices
        self.table: dict[str, Any] = {"aten::_scaled_dot_product_flash_attention_for_cpu": self.forward,
                                      "aten::_scaled_dot_product_flash_attention_for_cpu_backward": self.backward}
        self.table.update({"aten::_scaled_dot_product_efficient_attention": self.efficient,
                           "aten::_scaled_dot_product_efficient_attention_backward": self.efficient_backward})
        self.tile = core.tile

    # ---- shapes ----

    @staticmethod
    def grouped(x: Any, heads: int) -> Any:
        """(batch, heads of x, rows, columns) as (batch, heads, heads that share, rows, columns)."""
        return x.unflatten(1, (heads, x.shape[1] // heads))

    def records(self) -> tuple[Record, Record]:
        """Those of the two products; the first one keeps the second, the path of the softmax, and P for the gradients."""
        base = self.matrices.record("pair", True, 2)
        path, suffix = base.path, base.name[len(base.path):]
        scores, context = (Record(f"{path}.{word}", f"{path}.{word}{suffix}", "pair", True, 2, base.recomputed) for word in ("scores", "context"))
        scores.extra = [context, f"{path}.softmax", None]
        return scores, context

    def product(self, record: Record, slots: tuple[str, str, str], a: Any, b: Any, out: Any, transposed: tuple[bool, bool] = (False, False)) -> Any:
        """out = a b^T of stacks."""
        kind = "fprop" if slots[0] == "act" else "dgrad"
        format = self.products.placement(record, kind).format[slots[2]]
        if out is None:
            outer = a.shape[:-2]
            if outer != b.shape[:-2]:
                outer = torch.broadcast_shapes(outer, b.shape[:-2])  # type: ignore[no-untyped-call]
            out = torch.empty((*outer, a.shape[-2], b.shape[-2]), dtype=dtype_of(format), device=a.device)
        self.products.run(record, kind, View.of(a), View.of(b), View.of(out), transposed, slots=slots, to=format)
        return out

    # ---- softmax ----

    def softmax(self, path: str, s: Any, scale: float, causal: bool, mask: Any) -> tuple[Any, Any]:
        """P, and the logarithm of the sum."""
        placement = self.core.plans.place_kind(path, "softmax")
        entered = self.core.to_format(s, placement.format["act"]).float()
        made: tuple[Any, Any] = self.core.between.causal(entered, placement.format["out"], scale, causal, mask)
        return made

    def softmax_backward(self, path: str, dp: Any, p: Any, scale: float, causal: bool) -> Any:
        placement = self.core.plans.place_kind(path, "softmax")
        entered = self.core.to_format(dp, placement.format["agrad"]).float()
        return self.core.between.causal_backward(entered, p, placement.format["dgrad"], scale, causal)

    # ---- the operators ----

    def forward(self, q: Any, k: Any, v: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
                scale: Optional[float] = None) -> Any:
        core = self.core
        if core.as_torch:
            core.note("torch computes attention on a CPU in tiles of its own, whose sums are not these: attn_implementation='eager' has its bits")
        scores, context = self.records()
        if self.tile is not None:
            return self.tiled(scores, context, q, k, v, is_causal, attn_mask, scale)
        heads = k.shape[1]
        q5, k5, v5 = self.grouped(q, heads), k.unsqueeze(2), v.unsqueeze(2)
        mask = self.masked(attn_mask, q, heads)
        scale = scale if scale is not None else q.shape[-1] ** -0.5
        p, lse = self.probabilities(scores, q5, k5, scale, is_causal, mask)
        batch, h, rows, size = q.shape[0], q.shape[1], q.shape[2], v.shape[-1]
        format = self.products.placement(context, "fprop").format["out"]
        out = torch.empty((batch, rows, h, size), dtype=dtype_of(format), device=q.device).transpose(1, 2)
        self.product(context, PAIR["fprop"], p, v5.mT, self.grouped(out, heads))
        role = max(core.roles.of(x) for x in (q, k, v))
        core.paths.mark(scores)
        scores.extra[2] = p if torch.is_grad_enabled() else None
        core.roles.put(out, role)
        lse = lse.flatten(1, 2)
        core.roles.put(lse, role)
        return out, lse

    def efficient(self, q: Any, k: Any, v: Any, attn_bias: Any, compute_log_sumexp: bool, dropout_p: float = 0.0, is_causal: bool = False, *,
                  scale: Optional[float] = None) -> Any:
        """The operator that a CUDA device has: its results are those of `forward`."""
        if dropout_p:
            raise self.core.refused("attention", "dropout inside of scaled_dot_product_attention on a device: attn_implementation='eager' has it outside")
        out, lse = self.forward(q, k, v, 0.0, is_causal, attn_mask=attn_bias, scale=scale)
        nothing = torch.empty((), dtype=torch.int64)
        return out, lse, nothing, nothing.clone()

    def efficient_backward(self, dy: Any, q: Any, k: Any, v: Any, attn_bias: Any, out: Any, lse: Any, seed: Any, offset: Any, dropout_p: float,
                           wanted: Any, is_causal: bool = False, *, scale: Optional[float] = None) -> Any:
        dq, dk, dv = self.backward(dy, q, k, v, out, lse, dropout_p, is_causal, attn_mask=attn_bias, scale=scale)
        if len(wanted) > 3 and wanted[3]:
            raise self.core.refused("attention", "a gradient of the mask")
        return dq, dk, dv, None

    @staticmethod
    def masked(mask: Any, q: Any, heads: int) -> Any:
        """The mask, broadcast to (batch, heads, heads that share, rows, columns)."""
        if mask is None:
            return None
        mask = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape)) if mask.dim() < 4 else mask
        return mask.unsqueeze(2) if mask.shape[1] == 1 else mask.unflatten(1, (heads, mask.shape[1] // heads))

    def probabilities(self, scores: Record, q: Any, k: Any, scale: float, causal: bool, mask: Any) -> tuple[Any, Any]:
        s = self.product(scores, PAIR["fprop"], q, k, None)
        return self.softmax(scores.extra[1], s, scale, causal, mask)

    def backward(self, dy: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, dropout_p: float, is_causal: bool, *, attn_mask: Any = None,
                 scale: Optional[float] = None) -> Any:
        core = self.core
        scores = core.paths.found()
        if not isinstance(scores, Record) or scores.extra is None:
            raise core.refused("_scaled_dot_product_flash_attention_for_cpu_backward", "its forward pass was not seen")
        context, path, p = scores.extra
        if self.tile is not None:
            return self.tiled_backward(scores, context, dy, q, k, v, out, lse, is_causal, attn_mask, scale)
        heads = k.shape[1]
        q5, k5, v5, dy5 = self.grouped(q, heads), k.unsqueeze(2), v.unsqueeze(2), self.grouped(dy, heads)
        scale = scale if scale is not None else q.shape[-1] ** -0.5
        if p is None:
            p, _ = self.probabilities(scores, q5, k5, scale, is_causal, self.masked(attn_mask, q, heads))
        dp = self.product(context, PAIR["left"], dy5, v5, None, (False, True))
        turned = self.product(context, PAIR["right"], dy5.mT, p.mT, None, (True, True))  # of dV, as the gradient comes first
        dv = turned.mT
        ds = self.softmax_backward(path, dp, p, scale, is_causal)
        dq = self.product(scores, PAIR["left"], ds, k5.mT, None, (False, True)).flatten(1, 2)
        dk = self.product(scores, PAIR["right"], ds.mT, q5.mT, None, (True, True))
        scores.extra[2] = None
        made = dq, self.summed(scores, dk), self.summed(context, dv)
        given = []
        for x, like in zip(made, (q, k, v)):
            x = x.to(like.dtype)
            core.roles.put(x, GRAD)
            given.append(x)
        return tuple(given)

    def summed(self, record: Record, x: Any) -> Any:
        """The gradients of heads that share keys, added in binary32 in their order."""
        if x.shape[2] == 1:
            return x.squeeze(2)
        total = x[:, :, 0].float()
        for i in range(1, x.shape[2]):
            total = total + x[:, :, i].float()
        return self.core.rounded(total, self.products.placement(record, "dgrad").format["dgrad"])

    # ---- in tiles of keys, as FlashAttention computes it (mpsim/attention.h) ----

    def settings(self, scores: Record, context: Record, size: int, causal: bool, scale: Optional[float]) -> tuple[Any, Any, Any]:
        """The formats of both products' operands, and how tiles are computed."""
        first, second = self.products.placement(scores, "fprop"), self.products.placement(context, "fprop")
        if first.recipe["act"] is not None or second.recipe["act"] is not None:
            raise self.core.refused("attention", "a policy with attention in FP8 has no tiles here: attention='whole'")
        a, b = first.format, second.format
        arch = self.core.arch
        return a, b, tiles.Settings(arch.of(a["act"], a["weight"]), arch.of(b["act"], b["weight"]), size, b["act"], scale=scale, causal=causal, tile=self.tile)

    def seen(self, mask: Any, q: Any, k: Any) -> Any:
        if mask is None:
            return None
        if mask.dtype != torch.bool:
            raise self.core.refused("attention", "a mask of numbers has no tiles here: attention='whole', or a mask of booleans")
        return mask.expand(*q.shape[:-1], k.shape[-2]).contiguous()

    def tiled(self, scores: Record, context: Record, q: Any, k: Any, v: Any, causal: bool, mask: Any, scale: Optional[float]) -> Any:
        core = self.core
        a, b, how = self.settings(scores, context, q.shape[-1], causal, scale)
        y, lse = (torch.empty(shape, device=q.device) for shape in ((*q.shape[:-1], v.shape[-1]), q.shape[:-1]))
        core.home.tiles.forward(y, lse, q, k, v, how, (a["act"], a["weight"], b["weight"]), self.seen(mask, q, k))
        out = core.rounded(y, b["out"])
        core.paths.mark(scores)
        self.tell(scores, PAIR["fprop"], q, k, (a["act"], a["weight"]), out)
        self.tell(context, PAIR["fprop"], q, v, (b["act"], b["weight"]), out)
        role = max(core.roles.of(x) for x in (q, k, v))
        core.roles.put(out, role)
        core.roles.put(lse, role)
        return out, lse

    def tell(self, record: Record, slots: tuple[str, str, str], a: Any, b: Any, formats: tuple[Format, Format], out: Any) -> None:
        """A product of tiles, for those who watch: the operands of all tiles together."""
        if self.core.watchers:
            views = View.of(a), View.of(b)
            self.core.saw(record, "fprop" if slots[0] == "act" else "dgrad", slots, views, tuple(zip(views, formats)), formats,
                          self.core.arch.of(*formats), View.of(out), BINARY32)

    def tiled_backward(self, scores: Record, context: Record, dy: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, causal: bool, mask: Any,
                       scale: Optional[float]) -> Any:
        core = self.core
        a, b, how = self.settings(scores, context, q.shape[-1], causal, scale)
        arch, size = core.arch, q.shape[:-2]
        made = [torch.empty((*size, *x.shape[-2:]), device=q.device) for x in (q, k, v)]
        models = (arch.of(b["act"], b["agrad"]), arch.of(b["agrad"], b["weight"]), arch.of(a["agrad"], a["act"]), arch.of(a["agrad"], a["weight"]))
        dq, dk, dv = made
        core.home.tiles.backward(dq, dk, dv, dy, q, k, v, out.float().contiguous(), lse, how, (a["act"], a["weight"], b["weight"]),
                       models=(models[1], models[0], models[2], models[3]), gradient=b["agrad"], p=b["act"], ds=a["agrad"], mask=self.seen(mask, q, k))
        for record, slots, x, y in ((context, "left", dy, v), (context, "right", dy, q), (scores, "left", q, k), (scores, "right", k, q)):
            own = a if record is scores else b
            self.tell(record, PAIR[slots], x, y, (own["agrad"], own[PAIR[slots][1]]), dy)
        heads = k.shape[1]
        dq = core.rounded(made[0], a["dgrad"])
        dk, dv = (core.rounded(x, f) for x, f in zip(made[1:], (a["dgrad"], b["dgrad"])))
        dk, dv = self.summed(scores, self.grouped(dk, heads)), self.summed(context, self.grouped(dv, heads))
        given = []
        for x, like in zip((dq, dk, dv), (q, k, v)):
            x = x.to(like.dtype)
            core.roles.put(x, GRAD)
            given.append(x)
        return tuple(given)
