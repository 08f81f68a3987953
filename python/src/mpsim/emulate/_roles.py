"""What every tensor is: constant, weight, activation or gradient, by the storage that holds it.

The role of a result is the largest of its operands' roles, const < weight < act < grad; a view has its storage's role. Look-ups
and random numbers give activations. What nobody has tagged comes from outside: an activation.

Roles by objects, names or "made in backward" were tried and gave wrong answers.
"""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Iterable, Optional

CONST, WEIGHT, ACT, GRAD = range(4)
NAMES = ("const", "weight", "act", "grad")

LOOK_UPS = frozenset("aten::" + name for name in ("embedding", "_embedding_bag", "embedding_bag", "index", "index_select", "gather", "take",
                                                  "take_along_dim", "_unsafe_index", "one_hot", "multinomial", "bernoulli"))
RANDOM = frozenset("aten::" + name for name in ("rand", "randn", "randint", "randperm", "normal", "rand_like", "randn_like", "randint_like",
                                                "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "multinomial", "poisson"))


if TYPE_CHECKING:
    _Reference = weakref.ref[Any]
else:
    _Reference = weakref.ref


class Tag(_Reference):
    """What is known of a storage. The reference ends with the storage, and takes the tag out of the table."""

    __slots__ = ("key", "role", "param", "pinned", "extra")
    key: int
    role: int
    param: Any
    pinned: bool
    extra: Any



class Roles:
    """The tags of all storages that live."""

    def __init__(self) -> None:
        self.tags: dict[int, Tag] = {}
        self.gone = self._gone

    def _gone(self, tag: Tag) -> None:
        if self.tags.get(tag.key) is tag:
            del self.tags[tag.key]

    def of(self, tensor: Any) -> int:
        tag = self.tags.get(tensor.untyped_storage()._cdata)
        return ACT if tag is None else tag.role

    def tag(self, tensor: Any) -> Optional[Tag]:
        return self.tags.get(tensor.untyped_storage()._cdata)

    def put(self, tensor: Any, role: int) -> Tag:
        """The tag of a tensor's storage, made now if there is none, with at least this role."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        tag = self.tags.get(key)
        if tag is None:
            tag = self.tags[key] = Tag(storage, self.gone)  # a constructor in Python would take as long as all the rest
            tag.key, tag.role, tag.param, tag.pinned, tag.extra = key, role, None, False, None
        elif role > tag.role and not tag.pinned:
            tag.role = role
        return tag

    def pin(self, tensor: Any, role: int, param: Any = None) -> Tag:
        """A role that no write changes: of parameters."""
        tag = self.put(tensor, role)
        tag.role, tag.param, tag.pinned = role, param, True
        return tag

    def largest(self, tensors: Iterable[Any]) -> int:
        role = CONST
        for tensor in tensors:
            tag = self.tags.get(tensor.untyped_storage()._cdata)
            if tag is None:
                role = max(role, ACT)
            elif tag.role > role:
                role = tag.role
        return role

    def clear(self) -> None:
        self.tags.clear()
