"""What the sidecar said that hears the probe, against the oracle, which shares nothing with the probe."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence

from tests.real_engine import truth
from tests.real_engine.judging import Figure, late, within
from tests.real_engine.recording import Recording

REPEAT_SECONDS = 30.0
MOST_COST = 0.005
FALLEN_SILENT_SECONDS = 18.0  # 15 s that numbers hold, the beat before, the cycle and the scrape


def tails(run: Recording) -> Figure:
    """Each instant says after how many steps it is of: the oracle has a line for each of them."""
    wrong: list[tuple[float, int]] = []
    steps: set[float] = set()
    for row in run.of_probed("load", "overload_over"):
        said, step = row.get("tail_fragmentation_tokens", bound="expected"), row.get("scheduler_steps_total")
        if said is None or not step or not row.get("sequence_blocks"):
            continue  # nothing runs, and so no step is of now
        steps.add(step)
        true = run.oracle.steps[int(step) - 1].tail_tokens
        if said != true:
            wrong.append((said, true))
    enough = 0.8 * (run.marks["overload_over"] - run.marks["overload"])
    note = f"instants off by a token or more, of {len(steps)} different steps {wrong[:3] or ''}"
    return Figure(len(wrong), 0, "none", not wrong and len(steps) >= enough, note)


def bounds(run: Recording) -> Figure:
    """The estimate's bounds beside the exact number: what the probe adds."""
    rows = [row for row in run.of_probed("load", "quiet_over") if row.all("tail_fragmentation_tokens")]
    open_ = [row for row in rows if len({v.value for v in row.all("tail_fragmentation_tokens")}) > 1]
    return Figure(
        len(open_), 0, "none", bool(rows) and not open_, f"of {len(rows)} instants with bounds that differ"
    )


def preemptions(run: Recording) -> Figure:
    happened = sum(hit.at < run.marks["quiet_over"] for hit in run.oracle.preemptions)
    return within(run.probed_before("quiet_over").get("preemptions_total"), happened, 0, "exact")


def repeats(run: Recording) -> Figure:
    hits = [hit for hit in run.oracle.preemptions if hit.at < run.marks["quiet_over"]]
    happened = len(truth.repeats(hits, REPEAT_SECONDS))
    return within(run.probed_before("quiet_over").get("repeat_preemptions_total"), happened, 0, "exact")


def share(run: Recording) -> Figure:
    """Messages come a second apart, so that the ends of a window are known to within a second or two."""
    said, true = [], []
    again = truth.repeats(run.oracle.preemptions, REPEAT_SECONDS)
    for row in run.of_probed("overload", "overload_over"):
        ratio = row.get("pingpong_ratio", method="probe")
        if ratio is None:
            continue
        near = []
        for ago in (0.0, 0.5, 1.0, 1.5, 2.0):
            end = row.at - ago
            hits = sum(end - REPEAT_SECONDS < hit.at <= end for hit in run.oracle.preemptions)
            repeated = sum(end - REPEAT_SECONDS < hit.at <= end for hit in again)
            if hits:
                near.append(repeated / hits)
        if near:
            said.append(ratio)
            true.append(min(near, key=lambda each: abs(each - ratio)))
    if not said:
        return Figure(None, None, "+-0.01", holds=False, note="never seen")
    error = statistics.fmean(abs(a - b) for a, b in zip(said, true, strict=True))
    note = f"at the end; over {len(said)} instants {error:.4f} off on average"
    return Figure(said[-1], true[-1], "+-0.01", error <= 0.01, note)


def aborts(run: Recording) -> Figure:
    happened = truth.aborts(end for end in run.oracle.ends if end.at < run.marks["quiet_over"])
    return within(run.probed_before("quiet_over").get("client_aborts_total"), happened, 0, "exact")


def cost(run: Recording) -> Figure:
    """What it takes by its own clock, its thread included, in the last minute of overload."""
    last = run.probed_before("overload_over")
    ratio, steps = last.get("probe_overhead_ratio"), last.get("scheduler_steps_total")
    holds = ratio is not None and ratio < MOST_COST
    return Figure(ratio, None, f"under {MOST_COST}", holds, f"of step time, {steps or 0:.0f} steps by then")


def cost_by_switching(run: Recording) -> Figure:
    """What schedule() takes more while the probe counts, over the time from step to step.

    Judged by the tenth of the calls that others on the machine disturbed least; the medians stand beside it.
    """
    on, off = ([step for step in run.toggled if step.on is state] for state in (True, False))
    if min(len(on), len(off)) < 100:
        return Figure(
            None, None, f"under {MOST_COST}", holds=False, note=f"{len(on)} steps on, {len(off)} off"
        )
    longer = _least_disturbed(on) - _least_disturbed(off)
    usually = statistics.median(s.seconds for s in on) - statistics.median(s.seconds for s in off)
    pairs = list(itertools.pairwise(run.toggled))
    periods = {
        state: [later.began - step.began for step, later in pairs if step.on is later.on is state]
        for state in (True, False)
    }
    with_it, without = statistics.median(periods[True]), statistics.median(periods[False])
    note = (
        f"schedule() {longer * 1e6:+.1f} us, median {usually * 1e6:+.1f}; "
        f"step {with_it * 1e3:.2f} ms with it, {without * 1e3:.2f} without, "
        f"medians of {len(on)} and {len(off)} steps"
    )
    return Figure(longer / without, None, f"under {MOST_COST}", longer / without < MOST_COST, note)


def _least_disturbed(steps: Sequence[truth.Toggled]) -> float:
    return statistics.quantiles((step.seconds for step in steps), n=10)[0]


def silence(run: Recording) -> Figure:
    """A stopped engine's probe says nothing: after 15 s nothing is said to be exact, and then it is again.

    Later by as long as scrapes and cycles were late on this machine.
    """
    stopped = run.marks["long_stop"]
    rows = run.of_probed("long_stop", "long_stop_over")
    silent = stopped + FALLEN_SILENT_SECONDS + late(rows)
    claims = [row for row in rows if row.at > silent and row.all("probed_signal_info")]
    back = bool(run.probed_before("long_stop_settled").all("probed_signal_info"))
    told = any(row.all("probed_signal_info") for row in rows)
    note = f"instants that claim it after {FALLEN_SILENT_SECONDS:.0f} s; {'back' if back else 'not back'} after it"
    return Figure(len(claims), 0, "none", told and back and not claims and rows[-1].at > silent, note)


def totals_rise(run: Recording) -> Figure:
    """No total falls or jumps, the engine's stops and its end included."""
    names = ("client_aborts_total", "preemptions_total", "repeat_preemptions_total")
    fell = known = 0
    for name in names:
        values = [value for row in run.probed if (value := row.get(name)) is not None]
        known += bool(values)
        fell += sum(later < earlier for earlier, later in itertools.pairwise(values))
    end = {name: run.probed[-1].get(name) for name in names}
    doomed = sum(request.phase == "doomed" for request in run.requests)
    before = run.probed_before("kill").get("client_aborts_total") or 0.0
    jumped = (end["client_aborts_total"] or before) - before > doomed
    return Figure(
        fell,
        0,
        "none",
        known == len(names) and fell == 0 and not jumped,
        "times that a total fell, over the whole run",
    )


FIGURES: dict[str, Callable[[Recording], Figure]] = {
    "probe: tail tokens": tails,
    "probe: one bound": bounds,
    "probe: preemptions": preemptions,
    "probe: repeat preemptions": repeats,
    "probe: ping-pong": share,
    "probe: client aborts": aborts,
    "probe: cost": cost,
    "probe: cost, off and on": cost_by_switching,
    "probe: silence": silence,
    "probe: totals": totals_rise,
}
