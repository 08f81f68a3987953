"""Which module an operation belongs to, forward and backward, and the address of its random bits.

Forward: the innermost module of global hooks. Backward: the sequence number of the node of autograd, under which the forward pass
has left a mark. A module is called once or several times in a pass; a recomputation (checkpointing) is the call that it repeats.

An operation marks its node once, and only if a node was made. Checkpoints repeat the numbers of the first calls, so that random bits depend on
(seed, path, kind, step, micro-batch, element) and never on an order of calls. A step ends when an optimizer has stepped; the next begins with the
next call from outside (`_enter`) or backward pass. So optimizers that step one after the other share a step. A mark lives as long as its
graph; marks of calls whose nodes are gone are forgotten (`_forget`).
"""
from __future__ import annotations

from threading import get_ident
from collections import deque
from typing import Any, Callable, Iterable
from weakref import ref

import torch
from torch.nn.modules import module as modules

from ._refusals import class_refused

MARKS = 1 << 20  # of operations whose backward pass is to come; of more the oldest half is forgotten
LIVING = 1 << 15  # of more those are forgotten whose graph is gone
PASSES = 8  # whose marks keep copies of operands
STEPS = 4  # whose marks are kept

_current_node = torch._C._current_autograd_node
_graph_task = torch._C._current_graph_task_id
_sequence = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]


class Place:
    """A call of a module: its path, and the how many-th call of this pass it is."""

    __slots__ = ("path", "call", "count")

    def __init__(self, path: str, call: int) -> None:
        self.path, self.call = path, call
        self.count: dict[str, int] = {}  # operations of a kind so far, in this call

    def number(self, kind: str) -> int:
        """Which operation of its kind in this call this is, from 0."""
        n = self.count.get(kind, 0)
        self.count[kind] = n + 1
        return n

    def copy(self) -> "Place":
        other = Place(self.path, self.call)
        other.count = dict(self.count)
        return other


class Several(list[Any]):
    """Marks of one node: of a torch.autograd.Function, whose forward pass may have several products."""

    def drop(self) -> None:
        drop(self)

    @property
    def path(self) -> str:
        return str(self[0].path)


def drop(marks: Iterable[Any]) -> None:
    """What marks keep beside what they say: made again where a gradient wants it."""
    for mark in marks:
        if hasattr(mark, "drop"):
            mark.drop()


class Lives:
    """Something that the nodes of results hold."""

    __slots__ = ("__weakref__",)


def alive(output: Any) -> Any:
    """A weak reference that ends with the nodes of the tensors of a result: what comes of them holds these, and they hold their graph."""
    lives = Lives()
    _hold(output, lives, 3)
    return ref(lives)


def _hold(output: Any, lives: Lives, depth: int) -> None:
    if isinstance(output, torch.Tensor):
        node: Any = output.grad_fn
        if node is not None:
            node.metadata.setdefault("mpsim", []).append(lives)
    elif depth:
        of = output.values() if isinstance(output, dict) else output if isinstance(output, (tuple, list)) else getattr(output, "__dict__", {}).values()
        for each in of:
            _hold(each, lives, depth - 1)


class Paths:
    """The stack of modules."""

    def __init__(self, model: Any) -> None:
        self.named(model)
        self.changed = False  # modules or parameters were registered somewhere
        self.root = Place("", 0)
        self.stack: list[Place] = []
        self.calls: dict[str, int] = {}
        self.marks: dict[int, Any] = {}
        self.ended: set[int] = set()  # marks that a backward pass has found, or made for itself
        self.steps: deque[int] = deque()  # numbers of nodes where the last steps have ended
        self.spans: list[tuple[int, Any]] = []  # calls from outside: the number of the first node, what lives as long as the graph of the result
        self.look = LIVING  # how many marks are when spans are looked at
        self.fresh: list[Any] = []  # marks of this pass
        self.passes: deque[list[Any]] = deque()  # and of those before it
        self.functions: list[int] = []  # numbers of the nodes of functions whose forward pass runs
        self.depth = 0  # recomputations that run, one in another
        self.first = 0  # checkpoints without gradients whose function runs for the first time
        self.handles: list[Any] = []
        self.restores: list[Callable[[], None]] = []

    def named(self, model: Any) -> None:
        """The names of the model's modules."""
        self.names: dict[int, str] = {}
        for name, module in model.named_modules():
            self.names.setdefault(id(module), name)
        self.modules = dict(model.named_modules())  # which keeps their numbers theirs

    # ---- hooks ----

    def clear(self) -> None:
        """Nothing runs yet, whatever an interruption has left."""
        self.stack, self.functions, self.depth, self.first = [], [], 0, 0
        self.fresh = []
        for kept in (self.marks, self.ended, self.passes, self.steps, self.spans):
            kept.clear()
        self.begin_pass()

    def open(self, refused: Callable[[str, str], Exception], begins: Callable[[bool], None], grown: Callable[[], None]) -> None:
        """begins: called when the model is (True), or a part of it, unless that is inside of another call, or a recomputation. grown: when
        a module is entered after modules or parameters were registered."""
        self.thread, self.refused, self.begins, self.grown = get_ident(), refused, begins, grown
        self.handles = [modules.register_module_forward_pre_hook(self._enter),
                        modules.register_module_forward_hook(self._leave, always_call=True),
                        modules.register_module_parameter_registration_hook(self._registered),
                        modules.register_module_module_registration_hook(self._registered)]
        self._watch_checkpoints()
        self._watch_functions()

    def close(self) -> None:
        for handle in self.handles:
            handle.remove()
        for restore in self.restores:
            restore()
        self.handles, self.restores = [], []

    def _registered(self, _module: Any, _name: str, _what: Any) -> None:
        self.changed = True

    def _enter(self, module: Any, _inputs: Any) -> None:
        if self.changed and get_ident() == self.thread:
            self.changed = False
            self.grown()
        name = self.names.get(id(module))
        if get_ident() != self.thread:
            if name is not None:
                raise self.refused("a forward pass", f"'{name or type(module).__name__}' runs in another thread, whose operations are not seen")
            return
        if name is None:  # a module that the model does not own: what it does belongs to who calls it
            refused, why = class_refused(module)
            if refused:
                raise self.refused(refused, why)
            self.stack.append(self.stack[-1] if self.stack else self.root)
            return
        if not self.stack and not self.depth:
            self.begins(not name)
            if torch.is_grad_enabled():
                self.spans.append((_sequence(), None))
        call = self.calls.get(name, 0)
        self.calls[name] = call + 1
        self.stack.append(Place(name, call))

    def _leave(self, _module: Any, _inputs: Any, output: Any) -> None:
        if self.stack and get_ident() == self.thread:
            self.stack.pop()
            if not self.stack and not self.depth and self.spans and torch.is_grad_enabled():
                self.spans[-1] = self.spans[-1][0], alive(output)

    def begin_pass(self, calls: bool = False) -> None:
        """A micro-batch begins: modules are called for the first time again. calls: not again: the model is called once more before a
        backward pass, as a discriminator is."""
        if not calls:
            self.calls.clear()
            self.root = Place("", 0)
        self.passes.append(self.fresh)
        self.fresh = []
        if len(self.passes) > PASSES:
            drop(self.passes.popleft())

    def end_backward(self, kept: bool) -> None:
        """A backward pass is over. kept: its graph may be gone through again."""
        if not kept:
            for number in self.ended:
                drop((self.marks.pop(number, None),))
            self.ended.clear()

    def end_step(self) -> None:
        """Marks that no backward pass has wanted for some steps are forgotten, as those of recomputations are."""
        self.steps.append(_sequence())
        if len(self.steps) > STEPS:
            limit = self.steps.popleft()
            for number in [n for n in self.marks if n < limit]:
                drop((self.marks.pop(number),))
            self.ended = {n for n in self.ended if n >= limit}
            self.spans = [span for span in self.spans if span[0] >= limit]

    def _forget(self) -> None:
        """Marks of calls whose results are gone, and their graphs with them, are forgotten: of evaluations with gradients, say."""
        kept, ends = [], [first for first, _ in self.spans[1:]]
        for (first, lives), end in zip(self.spans, ends):
            if lives is None or lives() is not None:
                kept.append((first, lives))
            else:
                for number in range(first, end):
                    drop((self.marks.pop(number, None),))
        self.spans = kept + self.spans[-1:]
        self.look = max(LIVING, 2 * len(self.marks))

    # ---- where an operation is ----

    @property
    def forward(self) -> bool:
        """Whether an operation belongs to a forward pass: it is in a module, or no backward pass runs."""
        return bool(self.stack) or _graph_task() == -1

    @property
    def back(self) -> bool:
        """Whether a backward pass computes gradients, and makes nothing again. Elsewhere gradients are activations: of an adversarial input, say."""
        return _graph_task() != -1 and not self.depth

    def outside(self) -> bool:
        """Whether an operation is in no module, and in no backward pass."""
        return not self.stack and _graph_task() == -1

    def counts(self) -> bool:
        """Whether an operation is one of a training step, for the first time: no evaluation, no recomputation."""
        return not self.depth and (torch.is_grad_enabled() or self.first > 0 or bool(self.functions))

    def here(self) -> Place:
        return self.stack[-1] if self.stack else self.root

    def mark(self, record: Any) -> None:
        """What the node that autograd has just made for this operation is to find going back. The first mark stays: an operation
        without a node has the number of the one before."""
        if not torch.is_grad_enabled():  # no node was made, but that of a function with a backward pass of its own
            if self.functions:
                self.marks.setdefault(self.functions[-1], Several()).append(record)
                self.fresh.append(record)
            return
        number = _sequence() - 1
        if number not in self.marks:
            self.marks[number] = record
            self.fresh.append(record)
            if _graph_task() != -1:
                self.ended.add(number)
            if len(self.marks) > self.look:
                self._forget()
            if len(self.marks) > MARKS:
                for key in list(self.marks)[: MARKS // 2]:
                    del self.marks[key]

    def found(self) -> Any:
        """What the forward pass has left for the node that runs; None: nothing, or no node runs."""
        node = _current_node()
        if node is None:
            return None
        number = node._sequence_nr()
        self.ended.add(number)
        return self.marks.get(number)

    @staticmethod
    def node_name() -> str:
        node = _current_node()
        return "" if node is None else str(node.name())

    # ---- recomputation ----

    def _snapshot(self) -> tuple[dict[str, int], list[Place], Place]:
        return dict(self.calls), [place.copy() for place in self.stack], self.root.copy()

    def _again(self, then: tuple[dict[str, int], list[Place], Place], function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A function called again: what it calls is counted as it was the first time."""
        now = self.calls, self.stack, self.root
        self.calls, self.stack, self.root = dict(then[0]), [place.copy() for place in then[1]], then[2].copy()
        self.depth += 1
        try:
            return function(*args, **kwargs)
        finally:
            self.calls, self.stack, self.root = now
            self.depth -= 1

    def _watch_checkpoints(self) -> None:
        """torch.utils.checkpoint tells nobody that it calls a function again, so what it calls is replaced in its module."""
        import torch.utils.checkpoint as checkpoints

        outer, reentrant = self, checkpoints.CheckpointFunction
        name = "_checkpoint_without_reentrant_generator"
        name = name + "_impl" if hasattr(checkpoints, name + "_impl") else name
        generator = getattr(checkpoints, name)

        class Reentrant:
            @staticmethod
            def apply(function: Any, *args: Any) -> Any:
                then = None

                def run(*inputs: Any, **kwargs: Any) -> Any:
                    nonlocal then
                    if then is not None:
                        return outer._again(then, function, inputs, kwargs)
                    then = outer._snapshot()
                    outer.first += 1
                    try:
                        return function(*inputs, **kwargs)
                    finally:
                        outer.first -= 1

                return reentrant.apply(run, *args)

        def without_reentrant(function: Any, *args: Any, **kwargs: Any) -> Any:  # calls its function in the recomputation alone
            then = outer._snapshot()
            return generator(lambda *inputs, **words: outer._again(then, function, inputs, words), *args, **kwargs)

        checkpoints.CheckpointFunction = Reentrant  # type: ignore[assignment,misc]
        setattr(checkpoints, name, without_reentrant)
        self.restores += [lambda: setattr(checkpoints, "CheckpointFunction", reentrant), lambda: setattr(checkpoints, name, generator)]

    def _watch_functions(self) -> None:
        """A torch.autograd.Function has its node's number before its forward pass, which runs without gradients."""
        function: Any = torch.autograd.Function
        apply, functions = function.__dict__["apply"], self.functions

        def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.is_grad_enabled() or get_ident() != self.thread:
                return apply.__get__(None, cls)(*args, **kwargs)
            functions.append(_sequence())
            try:
                return apply.__get__(None, cls)(*args, **kwargs)
            finally:
                functions.pop()

        function.apply = classmethod(applied)
        self.restores.append(lambda: setattr(function, "apply", apply))
