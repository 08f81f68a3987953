"""What `mpsim.emulate` covers: `python survey.py [--policy P] [--arch A] [--bits] [--json FILE] [FAMILY]...`

For each family one step is run in plain torch and one emulated. The table (families.tsv) says how many products of which operations
there are, how many the emulation has claimed, how many it let torch compute, and how many operands have the roles of the judge. --bits also
runs the step again: repeated, on one and four threads, and checkpointed in both ways, and compares the bits of all gradients.
The exit code is 1 if anything is missing, wrong or different."""
from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import sys
import time
from typing import Any, Iterator

import torch
from torch.utils.checkpoint import checkpoint

import families
import judges
import mpsim

ROLES = ("const", "weight", "act", "grad")


@dataclasses.dataclass
class Row:
    """What is found of a family."""

    name: str
    products: int = 0
    operations: dict[str, int] = dataclasses.field(default_factory=dict)
    claimed: int = 0
    native: dict[str, int] = dataclasses.field(default_factory=dict)  # products that torch computed, by operation
    right: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    untold: int = 0  # operands that are all zeros
    bits: dict[str, bool] = dataclasses.field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing is missing or wrong."""
        return not (self.error or self.native or self.wrong) and self.claimed >= self.products and all(self.bits.values())


def step(case: families.Case, options: dict[str, Any] | None, inside: Any = None) -> tuple[Any, dict[str, str]]:
    """One step from the weights of `judges.run`, emulated, or without options in plain torch; the emulator and digests of the loss and of
    all gradients."""
    before = {key: value.clone() for key, value in case.model.state_dict().items()}
    judges.move(case.model, 7, 0.02)
    torch.manual_seed(4)
    try:
        with contextlib.nullcontext() if options is None else mpsim.emulate(case.model, native=case.native, **options) as e:  # type: ignore[operator]
            with inside(e) if inside else contextlib.nullcontext():
                loss = case.loss(case.model, case.batch(3))
                loss.backward()
            found = judges.digest({"loss": loss, **{n: p.grad for n, p in case.model.named_parameters() if p.grad is not None}})
    finally:
        case.model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for key, value in case.model.state_dict().items():
                value.copy_(before[key])
    return e, found


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Another number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def blocks(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The layers that a user would checkpoint: the members of lists of modules that are called one after another."""
    return [each for parent in model.modules() if isinstance(parent, torch.nn.ModuleList) and len(parent) > 1
            and len({type(each) for each in parent}) == 1 and list(parent[0].children()) for each in parent]


@contextlib.contextmanager
def checkpointed(model: torch.nn.Module, reentrant: bool) -> Iterator[int]:
    """The model with its layers checkpointed."""
    def saved(each: torch.nn.Module) -> Any:
        run = each.forward
        def forward(*args: Any, **kwargs: Any) -> Any:
            if not torch.is_grad_enabled():
                return run(*args, **kwargs)
            return checkpoint(lambda *given: run(*given, **kwargs), *args, use_reentrant=reentrant)
        return forward
    chosen = blocks(model)
    for each in chosen:
        each.forward = saved(each)  # type: ignore[method-assign]
    try:
        yield len(chosen)
    finally:
        for each in chosen:
            del each.forward


def bits(case: families.Case, options: dict[str, Any], base: dict[str, str]) -> dict[str, bool]:
    """Whether the step has the same bits in other circumstances. Where torch's own kernels between the products have others (a norm's
    gradient on another number of threads, sums of gradients in another order behind a reentrant checkpoint), plain torch's step tells:
    what differs there may differ here, and nothing else."""
    plain = step(case, None)[1]
    def equal() -> bool:
        other, now = step(case, None)[1], step(case, options)[1]
        return all(now[name] == base[name] or plain[name] != other[name] for name in base)
    same = {"repeated": step(case, options)[1] == base}
    for n in (1, 4):
        with threads(n):
            same[f"{n} threads"] = equal()
    for reentrant in (True, False):
        with checkpointed(case.model, reentrant) as count:
            if count:
                try:
                    same["reentrant" if reentrant else "not reentrant"] = equal()
                except Exception as error:  # a layer that cannot be checkpointed in plain torch
                    if isinstance(error, mpsim.Error):
                        raise
    return same


def row(name: str, case: families.Case, options: dict[str, Any], with_bits: bool) -> Row:
    """All about a family."""
    found, started = Row(name), time.time()
    try:
        expected = judges.judged(case)
        found.products, found.operations = len(expected), dict(collections.Counter(each.name for each in expected))
        below = judges.Products()
        asked: list[judges.Products] = []
        def inside(e: Any) -> judges.Products:
            asked.append(judges.Products(lambda operand: ROLES[e.core.roles.of(operand)]))
            return asked[0]
        with below:
            e, base = step(case, options, inside)
        found.native = dict(below.counts)
        judge_roles(found, expected, asked[0].seen)
        found.claimed = claims(e) if hasattr(e, "audit") else len(asked[0].seen) - sum(below.counts.values())
        if with_bits:
            found.bits = bits(case, options, base)
    except Exception as error:
        found.error = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        if "-v" in sys.argv:
            raise
    found.seconds = time.time() - started
    return found


def claims(e: Any) -> int:
    """How many products the emulator says that it has computed."""
    return sum(each["calls"] for each in e.audit().operators if each["how"] == "product")


def judge_roles(found: Row, expected: list[judges.Judged], seen: list[tuple[str, list[str]]]) -> None:
    """Compare roles, product for product."""
    if [each.name for each in expected] != [name for name, _ in seen]:
        found.error = f"other products than in plain torch: {len(seen)} instead of {len(expected)}"
        return
    for i, (each, (_, roles)) in enumerate(zip(expected, seen)):
        for j, (want, got) in enumerate(zip(each.roles, roles)):
            if want is None:
                found.untold += 1
            elif want == got:
                found.right += 1
            else:
                found.wrong.append(f"product {i} ({each.name}), operand {j}: {got}, expected {want}")


def table(rows: list[Row]) -> Iterator[str]:
    """The rows of families.tsv, and a sum."""
    yield "family\tproducts\toperations\tclaimed\tby torch\troles right\troles\tbits"
    for each in rows:
        operations = ", ".join(f"{short(name)} {n}" for name, n in sorted(each.operations.items()))
        native = ", ".join(f"{short(name)} {n}" for name, n in each.native.items()) or "0"
        same = ", ".join(k for k, v in each.bits.items() if not v)
        bits_or_error = each.error or (same + " differ" if same else "equal" if each.bits else "-")
        yield (f"{each.name}\t{each.products}\t{operations}\t{each.claimed}\t{native}\t{each.right}\t"
               f"{each.right + len(each.wrong)}\t{bits_or_error}")
    yield (f"# {len(rows)} families: {sum(r.products for r in rows)} products, {sum(r.claimed for r in rows)} claimed, "
           f"{sum(sum(r.native.values()) for r in rows)} by torch, {sum(r.right for r in rows)} of "
           f"{sum(r.right + len(r.wrong) for r in rows)} roles, {sum(bool(r.error) for r in rows)} errors")


def short(name: str) -> str:
    """A shorter name of an operation."""
    return name.replace("_scaled_dot_product_flash_attention_for_cpu", "sdpa").lstrip("_")


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--policy", default="te-nvfp4")
    parser.add_argument("--arch", default="blackwell-scaled")
    parser.add_argument("--bits", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    options = {"policy": given.policy, "arch": given.arch, "seed": 7}
    rows = []
    for name, case in judges.chosen(given.names or list(families.FAMILIES)):
        rows.append(row(name, case, options, given.bits))
        each = rows[-1]
        if not each.good:
            print(f"{name}: {each.error or each.native or [k for k, v in each.bits.items() if not v] or each.wrong[:3]}", file=sys.stderr, flush=True)
    print("\n".join(table(rows)))
    if given.json:
        with open(given.json, "w") as file:
            json.dump([dataclasses.asdict(each) for each in rows], file, indent=1)
    return 0 if all(each.good for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
