"""A pass of a torch model, recorded operation by operation, for `compare_runs` and `replay_products` of mpsim.testing.

An operation is a call below autograd: its name, the path of its module, whether backward made it, its arguments, and its tensors before and after.
Each tensor has a digest of its bits. Its numbers are kept, once for each digest, up to a limit of memory. Operations that only give another view of
their operand are not recorded: the next operation sees the view's numbers.
"""
from __future__ import annotations

import hashlib
import json
import os
import struct
from typing import Any, Iterator, Optional

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules import module as modules
from torch.utils._python_dispatch import TorchDispatchMode

from ._error import InputError

LIMIT = 1 << 30  # bytes of numbers that a recording keeps
PRODUCTS = {"mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2)}  # places of the operands among the arguments
HIDDEN = frozenset(("mv", "dot", "addmv", "convolution", "convolution_backward", "_grouped_mm", "_scaled_mm", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward",
                    "_trilinear", "_euclidean_dist", "addbmm", "addr"))  # which multiply, too; beside attention
RANDOM = frozenset(("rand", "randn", "randint", "randperm", "normal", "rand_like", "randn_like", "randint_like", "bernoulli", "uniform", "random",
                    "exponential", "multinomial", "poisson", "native_dropout", "dropout"))
EMPTY = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize"))
CASTS = frozenset(("_to_copy", "clone", "copy"))
WRAPPERS = ("_orig_mod.", "module.")  # of torch.compile and of DistributedDataParallel
SCHEMA = "mpsim.stand/1"


class Value:
    """A tensor's shape, dtype and digest; `tensor`: its numbers in memory, None where they were not kept. bits: SHA-256 of its elements alone."""

    __slots__ = ("digest", "dtype", "shape", "tensor", "bits")

    def __init__(self, digest: str, dtype: Any, shape: tuple[int, ...], tensor: Any, bits: str = "") -> None:
        self.digest, self.dtype, self.shape, self.tensor, self.bits = digest, dtype, shape, tensor, bits

    def __repr__(self) -> str:
        return f"<{str(self.dtype)[6:]} {list(self.shape)} {self.digest[:8]}>"


class Slot:
    """The place of a tensor among the arguments of an operation: which of its inputs."""

    __slots__ = ("n",)

    def __init__(self, n: int) -> None:
        self.n = n


class Op:
    """An operation. sources: of each input the number of the operation that made it, or the name of a parameter or buffer, or None."""

    __slots__ = ("number", "name", "func", "path", "backward", "args", "kwargs", "inputs", "sources", "turned", "outputs", "writes", "written")

    def __init__(self, number: int, func: Any, path: str, backward: bool) -> None:
        self.number, self.func, self.path, self.backward = number, func, path, backward
        self.name = func._schema.name.partition("::")[2].rstrip("_") or func._schema.name
        self.args: Any = ()
        self.kwargs: Any = {}
        self.inputs: list[Value] = []
        self.sources: list[Any] = []
        self.turned: list[bool] = []  # of each input: a matrix that is transposed in memory
        self.outputs: list[Value] = []
        self.writes = False
        self.written: list[int] = []  # of an operation without results: which inputs it writes, in the order of outputs

    @property
    def token(self) -> str:
        """The name for alignment: casts to different formats are different operations."""
        return f"{self.name}>{str(self.outputs[0].dtype)[6:]}" if self.name == "_to_copy" and self.outputs else self.name

    @property
    def multiplies(self) -> bool:
        """Whether it is a product, or has products inside."""
        return self.name in PRODUCTS or self.name in HIDDEN or "scaled_dot_product" in self.name or self.func.namespace not in ("aten", "prims")

    @property
    def place(self) -> str:
        return f"aten.{self.name} of {self.path or 'the model'}{' (backward)' if self.backward else ''}"

    @property
    def kept(self) -> bool:
        return all(v.tensor is not None for v in self.inputs)

    def again(self) -> list[Any]:
        """What torch on this CPU gives for the recorded inputs."""
        given: dict[int, Any] = {}

        def back(x: Any) -> Any:
            if isinstance(x, Slot):
                t = self.inputs[x.n].tensor
                given[x.n] = t.mT.contiguous().mT if self.turned[x.n] else t.clone()
                return given[x.n]
            if isinstance(x, (list, tuple)):
                return type(x)(back(y) for y in x)
            return torch.device("cpu") if isinstance(x, torch.device) else x

        with torch.no_grad():
            made = self.func(*back(self.args), **{k: back(v) for k, v in self.kwargs.items()})
        return [given[n] for n in self.written] or tensors(made, [])

    def __repr__(self) -> str:
        return f"<{self.number}: {self.place}>"


def tensors(tree: Any, found: list[Any]) -> list[Any]:
    if isinstance(tree, torch.Tensor):
        found.append(tree)
    elif isinstance(tree, (list, tuple)):
        for x in tree:
            tensors(x, found)
    return found


def raw(t: Any) -> Any:
    """The bytes of a tensor. The stride of a single element may be any number, which a view by bytes refuses."""
    t = t.contiguous()
    return t.as_strided((t.numel(),), (1,)).view(torch.uint8)


def _plain(path: str) -> str:
    for wrapper in WRAPPERS:
        path = path.replace(wrapper, "")
    return path


class Recording:
    """Operations in the order of execution. kept: bytes of numbers in memory; left_out: tensors of which only the digest is kept."""

    def __init__(self, model: Any, limit: int = LIMIT) -> None:
        self.ops: list[Op] = []
        self.values: dict[str, Value] = {}
        self.limit, self.kept, self.left_out = limit, 0, 0
        self.threads = torch.get_num_threads()
        self.parameters: dict[str, Value] = {}
        self._mode = Recorder(self, model) if model is not None else None

    def __enter__(self) -> Recording:
        assert self._mode is not None
        self._mode.open()
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._mode is not None
        self._mode.close()

    def value(self, t: Any) -> Value:
        """A tensor as it is now."""
        with torch.no_grad(), torch._C._DisableTorchDispatch():  # modes below this one do not see it
            flat = t.detach().contiguous().cpu()
            hashed = hashlib.sha256(raw(flat).numpy().data if flat.numel() else b"")
        bits = hashed.hexdigest()
        hashed.update(f"{flat.dtype}{tuple(flat.shape)}".encode())
        digest = hashed.hexdigest()[:32]
        found = self.values.get(digest)
        if found is None:
            size = flat.numel() * flat.element_size()
            keep = self.kept + size <= self.limit
            self.kept, self.left_out = self.kept + size * keep, self.left_out + (not keep)
            with torch.no_grad(), torch._C._DisableTorchDispatch():
                found = self.values[digest] = Value(digest, flat.dtype, tuple(flat.shape), flat.clone() if keep else None, bits)
        return found

    @property
    def products(self) -> list[Op]:
        return [op for op in self.ops if op.multiplies]

    def __len__(self) -> int:
        return len(self.ops)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __repr__(self) -> str:
        return f"<recording of {len(self.ops)} operations, {len(self.products)} of them products; {self.kept / 1e6:.1f} MB kept" + \
            (f", {self.left_out} tensors as digests only>" if self.left_out else ">")

    # ---- files ----

    def save(self, folder: str, rows: Optional[dict[str, str]] = None) -> None:
        """Write ops.json and tensors.safetensors, which doc/howto/first-guilty-operation.md describes, and run.json for `mpsim judge`, with rows
        by kinds of operations."""
        from ._run import write

        os.makedirs(folder, exist_ok=True)
        used = {v.digest for op in self.ops for v in op.inputs + op.outputs} | {v.digest for v in self.parameters.values()}
        values = [v for v in self.values.values() if v.digest in used]
        ops = [{"number": op.number, "operation": str(op.func), "path": op.path, "backward": op.backward, "writes": op.writes, "args": _words(op.args),
                "kwargs": {k: _words(v) for k, v in op.kwargs.items()}, "inputs": [v.digest for v in op.inputs], "sources": op.sources, "turned": op.turned,
                "outputs": [v.digest for v in op.outputs], "written": op.written} for op in self.ops]
        record = {"schema": SCHEMA, "threads": self.threads, "parameters": {n: v.digest for n, v in self.parameters.items()},
                  "values": {v.digest: {"dtype": str(v.dtype)[6:], "shape": list(v.shape), "bits": v.bits} for v in values}, "operations": ops}
        with open(os.path.join(folder, "ops.json"), "w") as file:
            json.dump(record, file, indent=0)
        _write_tensors(os.path.join(folder, "tensors.safetensors"), [v for v in values if v.tensor is not None])
        write(self, folder, rows or {})


NAMES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.int32: "I32",
         torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}


def _write_tensors(path: str, values: list[Value]) -> None:
    """A safetensors file whose names are digests."""
    at, table = 0, {}
    values = [v for v in values if v.dtype in NAMES]
    for v in values:
        end = at + v.tensor.numel() * v.tensor.element_size()
        table[v.digest] = {"dtype": NAMES[v.dtype], "shape": list(v.shape), "data_offsets": [at, end]}
        at = end
    head = json.dumps(table).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for v in values:
            if v.tensor.numel():
                file.write(raw(v.tensor).numpy().data)


def _read_tensors(path: str) -> dict[str, Any]:
    types, found = {name: dtype for dtype, name in NAMES.items()}, {}
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    for name, entry in json.loads(data[8:8 + size]).items():
        first, end = (8 + size + x for x in entry["data_offsets"])
        raw = torch.frombuffer(bytearray(data[first:end]), dtype=torch.uint8) if end > first else torch.empty(0, dtype=torch.uint8)
        found[name] = raw.view(types[entry["dtype"]]).reshape(entry["shape"])
    return found


def _words(x: Any) -> Any:
    """An argument for JSON: tensors, dtypes and what has no other form are objects with one key."""
    if isinstance(x, Slot):
        return {"input": x.n}
    if isinstance(x, (list, tuple)):
        return [_words(y) for y in x]
    if x is None or isinstance(x, (bool, int, str)) or isinstance(x, float) and x == x and abs(x) != float("inf"):
        return x
    return {"dtype": str(x)[6:]} if isinstance(x, torch.dtype) else {"float": str(x)} if isinstance(x, float) else {"text": str(x)}


def _unworded(x: Any) -> Any:
    if isinstance(x, list):
        return [_unworded(y) for y in x]
    if not isinstance(x, dict):
        return x
    if "input" in x:
        return Slot(x["input"])
    return getattr(torch, x["dtype"]) if "dtype" in x else float(x["float"]) if "float" in x else x.get("text")


def open_recording(folder: str) -> Recording:
    """A recording that Recording.save has written, on any machine."""
    try:
        with open(os.path.join(folder, "ops.json")) as file:
            record = json.load(file)
        kept = _read_tensors(os.path.join(folder, "tensors.safetensors"))
        if record["schema"] != SCHEMA:
            raise InputError(f"{folder}: expected the schema {SCHEMA}, found {record['schema']}")
        r = Recording(None)
        r.threads = record["threads"]
        r.values = {d: Value(d, getattr(torch, v["dtype"]), tuple(v["shape"]), kept.get(d), v.get("bits", "")) for d, v in record["values"].items()}
        r.parameters = {n: r.values[d] for n, d in record["parameters"].items()}
        r.ops = [_op(r, entry) for entry in record["operations"]]
    except (OSError, KeyError, ValueError, TypeError, AttributeError, struct.error, RuntimeError) as error:
        raise InputError(f"{folder}: no recording of mpsim.testing: {error}") from None
    r.kept = sum(v.tensor.numel() * v.tensor.element_size() for v in r.values.values() if v.tensor is not None)
    r.left_out = sum(v.tensor is None for v in r.values.values())
    return r


def _op(r: Recording, entry: Any) -> Op:
    space, name, overload = entry["operation"].split(".")
    op = Op(entry["number"], getattr(getattr(getattr(torch.ops, space), name), overload), entry["path"], entry["backward"])
    op.args, op.kwargs = tuple(_unworded(entry["args"])), {k: _unworded(v) for k, v in entry["kwargs"].items()}
    op.inputs, op.outputs = [r.values[d] for d in entry["inputs"]], [r.values[d] for d in entry["outputs"]]
    op.sources, op.turned, op.writes = entry["sources"], entry["turned"], entry["writes"]
    op.written = entry.get("written", [])
    return op


# ---- the mode ----


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what is dispatched. Modules of global hooks; in backward the module whose forward pass made the node of autograd."""

    def __init__(self, to: Recording, model: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.to, self.model = to, model
        self.names = {id(m): _plain(name) for name, m in model.named_modules()}
        self.stack: list[str] = []
        self.made: dict[int, tuple[Any, Any]] = {}  # of a storage: a reference that keeps its number its own, and where it comes from
        self.nodes: dict[int, str] = {}
        self.handles: list[Any] = []

    def open(self) -> None:
        torch.clear_autocast_cache()
        for name, t in [*self.model.named_parameters(), *self.model.named_buffers()]:
            self._mark(t, _plain(name))
            self.to.parameters[_plain(name)] = self.to.value(t)
        self.handles = [modules.register_module_forward_pre_hook(self._enter), modules.register_module_forward_hook(self._leave, always_call=True)]
        self.__enter__()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        for handle in self.handles:
            handle.remove()
        self.made.clear()

    def _enter(self, module: Any, _inputs: Any) -> None:
        if "_orig_mod" in module._modules or getattr(module, "_compiled_call_impl", None) is not None:
            raise InputError("record: torch runs a compiled model operation by operation while it is recorded: record the model before torch.compile")
        self.stack.append(self.names.get(id(module), self.stack[-1] if self.stack else ""))

    def _leave(self, _module: Any, _inputs: Any, _output: Any) -> None:
        if self.stack:
            self.stack.pop()

    def _mark(self, t: Any, source: Any) -> None:
        storage = t.untyped_storage()
        self.made[storage._cdata] = StorageWeakRef(storage), source  # type: ignore[no-untyped-call]

    def _source(self, t: Any) -> Any:
        return self.made.get(t.untyped_storage()._cdata, (None, None))[1]

    def _where(self) -> tuple[str, bool]:
        backward = torch._C._current_graph_task_id() != -1
        if self.stack or not backward:
            path = self.stack[-1] if self.stack else ""
            self.nodes.setdefault(torch.autograd._get_sequence_nr() - 1, path)  # type: ignore[attr-defined]
            return path, backward
        node = torch._C._current_autograd_node()
        return self.nodes.get(node._sequence_nr(), "") if node is not None else "", True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd") and \
                not func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CPU):
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        op = Op(len(self.to.ops), func, *self._where())
        given: list[Any] = []
        if op.name in EMPTY:
            return func(*args, **kwargs)
        op.writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
        if op.writes:  # before they are written
            self._inputs(op, args, kwargs, given)
        out = func(*args, **kwargs)
        results = tensors(out, [])
        if op.writes and not results:
            results = self._written(op, args)
        if not op.writes:
            places = {t.untyped_storage()._cdata for t in tensors((args, list(kwargs.values())), [])}
            if results and all(t.untyped_storage()._cdata in places for t in results) or not results:
                return out
            self._inputs(op, args, kwargs, given)
        op.outputs = [self.to.value(t) for t in results]
        for t in results:
            self._mark(t, op.number)
        self.to.ops.append(op)
        return out

    @staticmethod
    def _written(op: Op, args: Any) -> list[Any]:
        """The tensors that an operation without results has written."""
        flags = [a.alias_info is not None and a.alias_info.is_write for a in op.func._schema.arguments]
        op.written = [x.n for wanted, arg in zip(flags, op.args) if wanted for x in (arg if isinstance(arg, (list, tuple)) else [arg]) if isinstance(x, Slot)]
        return [t for wanted, arg in zip(flags, args) if wanted for t in tensors(arg, [])]

    def _inputs(self, op: Op, args: Any, kwargs: Any, given: list[Any]) -> None:
        def slots(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                given.append(x)
                return Slot(len(given) - 1)
            return type(x)(slots(y) for y in x) if type(x) in (list, tuple) else x

        op.args, op.kwargs = slots(args), {k: slots(v) for k, v in kwargs.items()}
        op.inputs, op.sources = [self.to.value(t) for t in given], [self._source(t) for t in given]
        op.turned = [t.dim() > 1 and t.stride(-1) != 1 and t.stride(-2) == 1 for t in given]
