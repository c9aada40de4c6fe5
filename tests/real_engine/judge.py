"""What the sidecar said against what happened, one figure a claim. It reads a recording and nothing else.

The machine may be slow or busy with something else, and then nothing here is wrong. So what a claim is compared with is
what really happened, by the oracle and the clients, never what should have; a read of the engine that took long is of
no moment and is left out, and where too many are, ``pace`` fails; and a wait is allowed to take longer by as long as
scrapes and cycles were seen to be late.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable

from exporter.derive.pingpong import BOUND_SECONDS, HISTOGRAM_SECONDS
from tests.real_engine import truth
from tests.real_engine.judging import LAG_SECONDS, Figure, instants, late, reads, within
from tests.real_engine.recorder import Row
from tests.real_engine.recording import Recording

MOST_LATE = 0.1  # share of instants in which the engine's own gauges may be later than that
STARTED_AT_LEAST = 20  # fewer preemptions make no share worth comparing
BOUND_LATE_SECONDS = 3.0
STALL_SECONDS = 2.0  # what a look a second can tell from no stall
QUICK_SHARE, INSTANTS_AT_LEAST = (
    0.75,
    30,
)  # of the reads under overload; below, the means are those of few instants


def pace(run: Recording) -> Figure:
    """Whether the machine was quick enough to be judged by: else the other figures are those of few instants."""
    took = [took for _, _, took in reads(run, "overload", "overload_over")]
    quick = sum(each <= LAG_SECONDS for each in took)
    longest = max(took, default=0.0)
    note = f"reads of the engine under overload, those over {LAG_SECONDS:.0f} s left out; longest {longest:.2f} s"
    holds = quick >= max(INSTANTS_AT_LEAST, QUICK_SHARE * len(took))
    return Figure(quick, len(took), f"{INSTANTS_AT_LEAST}, {QUICK_SHARE:.0%}", holds, note)


def preemptions(run: Recording) -> Figure:
    measured = run.last_before("quiet_over").get("preemptions_total")
    ends = [end for end in run.oracle.ends if end.at < run.marks["quiet_over"]]
    happened = sum(hit.at < run.marks["quiet_over"] for hit in run.oracle.preemptions)
    untold = truth.untold_preemptions(ends)
    allowed = 2 + untold
    return within(
        measured,
        happened,
        allowed,
        f"+-2 and {untold} untold",
        f"{_aborted_after_one(ends)} aborted after one",
    )


def _aborted_after_one(ends: Iterable[truth.End]) -> int:
    return sum(end.aborted and end.preemptions > 0 for end in ends)


def tail_expected(run: Recording) -> Figure:
    measured = happened = 0.0
    count = 0
    for row, at in instants(run, "overload", "overload_over"):
        expected = row.get("tail_fragmentation_tokens", bound="expected")
        true = truth.mean_tail(run.oracle.steps, at - LAG_SECONDS, at)
        if expected is not None and true is not None:
            measured, happened, count = measured + expected, happened + true, count + 1
    said = measured if count else None
    return within(said, happened, 0.05 * happened, "+-5 %", f"tokens, the sum of {count} instants")


def tail_bounds(run: Recording) -> Figure:
    """The engine tells of what runs after a step, the oracle of what runs in it: those that ended with it are between.

    On a busy machine a step and the next are far enough apart for many reads to fall there. The oracle has no tail to
    hold these against; they and the late ones can't be more than a tenth.
    """
    outside, count, late, between = 0, 0, 0, 0
    for row, at in instants(run, "load", "quiet_over"):
        told = row.get("sequences", state="running")
        ran = truth.running_range(run.oracle.steps, at - LAG_SECONDS, at)
        ended = sum(at - LAG_SECONDS <= end.at <= at for end in run.oracle.ends)
        if told is not None and ran is not None and not ran[0] - ended <= told <= ran[1]:
            late += 1  # the bounds are those of as many sequences as the engine itself told of
            continue
        if told is not None and ran is not None and told < ran[0]:
            between += 1
            continue
        least = row.get("tail_fragmentation_tokens", bound="min")
        most = row.get("tail_fragmentation_tokens", bound="max")
        true = truth.tail_range(run.oracle.steps, at - LAG_SECONDS, at)
        if least is not None and most is not None and true is not None:
            count += 1
            outside += true[1] < least or true[0] > most
    return Figure(
        outside,
        0,
        "none",
        outside == 0 and count > 0 and late + between <= MOST_LATE * (count + late + between),
        f"instants outside min..max, of {count}; {between} between two steps, {late} with late gauges",
    )


def pingpong_histogram(run: Recording) -> Figure:
    said, true = [], []
    for row, at in instants(run, "overload", "quiet_over"):
        share = row.get("pingpong_ratio", method="histogram")
        found = truth.finished_repeat_share(run.oracle.ends, at - HISTOGRAM_SECONDS, at - LAG_SECONDS / 2)
        if share is not None and found is not None and found[1] >= STARTED_AT_LEAST:
            said.append(share)
            true.append(found[0])
    if not said:
        return Figure(None, None, "+-0.05", holds=False, note="never seen beside enough preemptions")
    worst = max(abs(a - b) for a, b in zip(said, true, strict=True))
    error = statistics.fmean(abs(a - b) for a, b in zip(said, true, strict=True))
    note = f"at the end; over {len(said)} instants {error:.3f} off on average, {worst:.3f} at worst"
    last = abs(said[-1] - true[-1])
    return Figure(said[-1], true[-1], "+-0.05", holds=last <= 0.05 and error <= 0.05, note=note)


def pingpong_bound(run: Recording) -> Figure:
    """Preemptions are told late, so the truth is the most that any window ending within 3 s says.

    One is told with the next token of its sequence: where a client had to wait longer for one, the windows reach back
    as far.
    """
    gap = max((request.max_gap for request in run.of_phase("overload")), default=0.0)
    lates = [step / 2 for step in range(int(2 * max(BOUND_LATE_SECONDS, gap)) + 1)]
    excess, highest, beside, count = 0.0, 0.0, 0.0, 0
    for row, at in instants(run, "overload", "quiet_over"):
        bound = row.get("pingpong_ratio", method="bound")
        shares = [_share(run, at - each) for each in lates]
        known = [share for share in shares if share is not None]
        if bound is None or not known:
            continue
        count += 1
        excess = max(excess, bound - max(known))
        if bound >= highest:
            highest, beside = bound, max(known)
    note = f"highest of {count} instants, beside the truth there; most above it: {excess:.3f}"
    return Figure(highest, beside, "never above", excess <= 0.0 and count > 0, note)


def _share(run: Recording, at: float) -> float | None:
    return truth.repeat_share(run.oracle.preemptions, at - BOUND_SECONDS, at)


def client_aborts(run: Recording) -> Figure:
    measured = run.last_before("quiet_over").get("client_aborts_total")
    happened = truth.aborts(end for end in run.oracle.ends if end.at < run.marks["quiet_over"])
    left = sum(request.end in ("left", "cut") for request in run.requests)
    return within(measured, happened, 2, "+-2", f"{left} clients left, some too late to matter")


def token_interval(run: Recording) -> Figure:
    """Where the trailing 30 s of the signal lie wholly under overload."""
    said, true = [], []
    for row, at in instants(run, "overload", "overload_over"):
        interval = row.get("token_interval_seconds")
        gap = truth.mean_gap(run.requests, at - 30.0, at)
        if at - 30.0 >= run.marks["overload"] and interval is not None and gap is not None:
            said.append(interval)
            true.append(gap)
    if not said:
        return Figure(None, None, "+-10 %", holds=False, note="no instant with 30 s of overload behind it")
    measured, happened = statistics.fmean(said), statistics.fmean(true)
    return within(measured, happened, 0.1 * happened, "+-10 %", f"seconds, the mean of {len(said)} instants")


def stall_counted(run: Recording) -> Figure:
    """Against the standstills of the scheduler itself, which a busy machine makes longer, or makes more of.

    Both ends of one are seen a second late at most, and later by a read that took long.
    """
    before = run.last_before("short_stop").get("decode_stall_seconds_total")
    after = run.last_before("short_stop_settled").get("decode_stall_seconds_total")
    rise = after - before if before is not None and after is not None else None
    steps = truth.steps_between(
        run.oracle.steps, run.marks["short_stop"] - 1.0, run.marks["short_stop_settled"]
    )
    gaps = [later.at - step.at for step, later in itertools.pairwise(steps)]
    stood = sum(gap for gap in gaps if gap >= STALL_SECONDS)
    took = [took for _, _, took in reads(run, "short_stop", "short_stop_settled")]
    note = f"stopped for {run.marks['short_stop_over'] - run.marks['short_stop']:.1f} s"
    return within(rise, stood, 1.0 + max(took, default=0.0), "+-1 s and a read", note)


def frozen_told(run: Recording) -> Figure:
    alarms = [
        row.at - run.marks["long_stop"]
        for row in run.between("long_stop", "long_stop_over")
        if row.get("engine_frozen") == 1.0
    ]
    early = [row for row in run.between("load", "long_stop") if row.get("engine_frozen") == 1.0]
    after = run.last_before("long_stop_settled").get("engine_frozen")
    holds = bool(alarms) and after == 0.0 and not early
    note = f"seconds into the stop; {len(early)} false before it, {after} after it"
    return Figure(alarms[0] if alarms else None, 30.0, "1, then 0", holds, note)


def requests_survive(run: Recording) -> Figure:
    across = [
        request.end
        for request in run.of_phase("steady")
        if request.begin < run.marks["long_stop"] and request.over > run.marks["long_stop_over"]
    ]
    done = across.count("done")
    return Figure(
        done, len(across), "all", bool(across) and done == len(across), "requests the long stop fell into"
    )


def source_down(run: Recording) -> Figure:
    """Counted from the end of the front end, which may still answer for seconds after its core is dead."""
    engine = str(run.facts["engine"])
    rows = run.between("kill", "over")
    down = [row.at - run.marks["gone"] for row in rows if row.get("source_up", source=engine) == 0.0]
    holds = bool(down) and down[0] <= 3.0 + late(rows)
    lived_on = run.marks["gone"] - run.marks["kill"]
    note = f"seconds from the engine's end (the core dead {lived_on:.1f} s before) to source_up 0"
    return Figure(down[0] if down else None, 0.0, "within 3 s", holds, note)


def signals_vanish(run: Recording) -> Figure:
    rows = run.between("kill", "over")
    seen = [row.at - run.marks["gone"] for row in rows if _engine_gauges(row)]
    end = run.rows[-1].at - run.marks["gone"]
    last = max(seen, default=0.0)
    holds = bool(seen) and last <= 20.0 + late(rows) and last < end
    return Figure(last, None, "within 20 s", holds, "seconds from the engine's end to the last gauge of it")


def unknown_is_absent(run: Recording) -> Figure:
    """Before the engine's first answer it has no gauges; what such an engine can't tell never shows."""
    engine = str(run.facts["engine"])
    wrong: set[str] = set()
    early = [
        row for row in run.rows if row.at < run.marks["ready"] and not row.get("source_up", source=engine)
    ]
    for row in early:
        wrong.update(_engine_gauges(row))
    for row in run.rows:
        wrong.update(v.name for v in row.values if v.name.startswith(("pcie_", "swap_bytes")))
        wrong.update(f"{v.name}{{state=swapped}}" for v in row.all("sequences", state="swapped"))
    note = f"{len(early)} scrapes before the engine answered" + (
        f"; zeros or worse: {sorted(wrong)}" if wrong else ""
    )
    return Figure(len(wrong), 0, "none", not wrong and bool(early), note)


def always_answers(run: Recording) -> Figure:
    failed = [row.error for row in run.rows if row.error]
    times = sorted(row.seconds for row in run.rows)
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    note = f"failed scrapes of {len(times)}; p99 {p99 * 1000:.1f} ms, longest {times[-1] * 1000:.1f} ms"
    return Figure(len(failed), 0, "none", not failed, note + "".join(f"; {error}" for error in failed[:1]))


FIGURES: dict[str, Callable[[Recording], Figure]] = {
    "pace of the machine": pace,
    "preemptions": preemptions,
    "tail fragmentation, expected": tail_expected,
    "tail fragmentation, bounds": tail_bounds,
    "ping-pong, histogram": pingpong_histogram,
    "ping-pong, bound": pingpong_bound,
    "client aborts": client_aborts,
    "token interval": token_interval,
    "decode stall": stall_counted,
    "engine frozen": frozen_told,
    "requests survive the stop": requests_survive,
    "source down": source_down,
    "signals vanish": signals_vanish,
    "unknown is absent": unknown_is_absent,
    "always answers": always_answers,
}


def _engine_gauges(row: Row) -> set[str]:
    return {value.name for value in row.values if value.kind == "gauge" and "engine" in value.labels}
