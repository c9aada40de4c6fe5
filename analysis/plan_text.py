"""A plan for people, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.capacity import GIB, Serving
from analysis.plan import BLOCK_SIZES, OnGpu, Plan, assumptions
from analysis.wording import columns

_GB = 1e9


def plan_lines(made: Plan) -> Iterator[str]:
    """All of it, the assumptions at its end."""
    kv = made.model.kv
    yield f"{made.model.name}: {kv.bytes_per_token:,.0f} bytes of KV cache a token"
    for kind in kv.kinds:
        reach = "all tokens" if kind.window_tokens is None else f"{kind.window_tokens} tokens"
        yield f"  {kind.layers} layers x {kind.bytes_per_token:,.0f} bytes, looking back on {reach}"
    for each in made.on:
        yield ""
        yield from _on(each, made.serving)
    yield ""
    yield from _tails(made)
    yield ""
    yield "assumed"
    yield from (f"  {line}" for line in assumptions(made))
    yield from (f"  {each.gpu.name}: {each.gpu.source}" for each in made.on)


def _on(each: OnGpu, serving: Serving) -> Iterator[str]:
    fit = each.fit
    yield (
        f"{serving.gpus} x {each.gpu.name}: {fit.kv_bytes / GIB:.2f} GiB of KV cache on each, {fit.blocks:,} blocks of"
        f" {serving.block_tokens} tokens ({fit.usable:,} of them usable): {fit.tokens:,} tokens"
    )
    rows = [("tokens", "sequences", "swapped back", "computed anew", "sooner", "equal at a link of")]
    for (tokens, count), times in zip(each.sequences, each.times, strict=True):
        rows.append(
            (
                f"{tokens:,}",
                f"{count:,}",
                _seconds(times.swap_seconds),
                _seconds(times.recompute_seconds),
                "swap" if times.swap_is_faster else "recompute",
                f"{times.equal_link_bytes_per_second / _GB:.3g} GB/s",
            )
        )
    yield from columns(rows)
    yield _break_even(each)


def _break_even(each: OnGpu) -> str:
    link = f"link {each.gpu.pcie_bytes_per_second / _GB:.1f} GB/s"
    if not each.break_even:
        way = "swapping" if each.times[0].swap_is_faster else "computing anew"
        return f"{way} is sooner at every length ({link})"
    swap = each.times[0].swap_is_faster
    # before the first length that is listed it may have changed already
    for tokens in each.break_even:
        swap ^= tokens <= each.times[0].tokens
    words = [f"{'swapping' if swap else 'computing anew'} is sooner at first"]
    for tokens in each.break_even:
        swap = not swap
        words.append(f"{'swapping' if swap else 'computing anew'} from {tokens:,} tokens on")
    return f"{', '.join(words)} ({link})"


def _tails(made: Plan) -> Iterator[str]:
    yield "empty tails of blocks, of a sequence, by block size"
    rows = [("tokens", *(str(size) for size in BLOCK_SIZES))]
    for tokens, tails in zip(made.lengths, made.tails, strict=True):
        rows.append((f"{tokens:,}", *(f"{each.ratio:.2%}" for each in tails)))
    yield from columns(rows)


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
