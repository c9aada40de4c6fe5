"""What the demo says in the end, and what it misses."""

from __future__ import annotations

from dataclasses import replace

from drill.recording import Scrape
from drill.sidecar import Cost, Reading
from drill.story import Event, new_events
from drill.summary import NEXT, Run, failures, report
from tests.drill.readings import CALM, reading, without


def said(*shown: Reading) -> str:
    return " ".join(report(run(CALM, *shown), 80).split())


def page(usage: float, preemptions: float) -> bytes:
    return f'vllm:gpu_cache_usage_perc{{m="x"}} {usage}\nvllm:num_preemptions_total{{m="x"}} {preemptions}\n'.encode()


def run(*readings: Reading, reads: int = 86) -> Run:
    history = tuple((float(second), each) for second, each in enumerate(readings))
    played = (
        Scrape(17.0, "load", page(0.1, 0)),
        Scrape(30.0, "overload", page(0.97, 9)),
        Scrape(33.0, "after", page(0.0, 9)),
    )
    events = new_events((), 0.0, readings[-1]) if readings else ()
    return Run(86.0, played, history, events, departures=77, reads=reads, cost=Cost(0.43, 46e6))


def test_a_run_that_saw_the_story_has_no_failures() -> None:
    assert failures(run(CALM, reading())) == []


def test_a_run_that_missed_something_says_what() -> None:
    assert failures(run()) == ["the sidecar was never read"]
    assert failures(run(reading(), reads=3)) == ["the sidecar read the engine only 3 times in 86 s"]
    assert failures(run(CALM)) == [
        "preemptions moved on the engine's page (vllm:num_preemptions_total), but not in the sidecar"
    ]
    assert failures(run(Reading({}, {})))[0] == "the sidecar no longer reads the engine (source_up is None)"


def test_what_the_engine_said_last_may_still_be_on_its_way() -> None:
    full = run(CALM)
    assert failures(replace(full, played=full.played[:2])) == []


def test_the_report_keeps_to_the_width_and_scales_the_swap() -> None:
    text = report(run(CALM, reading()), 80)
    assert max(map(len, (text + "\n" + NEXT).split("\n"))) <= 80
    words = " ".join(text.split())
    assert "peaked at 97% with up to 52 sequences waiting, and stands at 97%." in words
    assert "with the model of the incident, at 320 KiB a token, it would be 37.5 GB each way." in words
    assert "77 clients left early; vLLM itself counts 0, the clients' own log 77." in words
    assert "with 0.5% of one core and at most 46.0 MB of memory." in words


def test_whether_it_thrashed_is_told_as_the_sidecar_says() -> None:
    assert "9 preemptions, 2 tokens for each: full, but not thrashing." in said(reading(each=2))
    assert ": it thrashed." in said(reading(thrashing=1))
    assert ": it thrashed." in said(reading(thrashing=1), reading())
    unknown = report(run(without(CALM, "thrashing"), without(reading(), "thrashing")), 80)
    assert "9 preemptions, 800 tokens for each. In the incident" in " ".join(unknown.split())
    assert "it thrashed" not in unknown
    assert "not thrashing" not in unknown


def test_an_engine_that_swaps_computes_nothing_again() -> None:
    swapping = said(reading())
    assert (
        "58.6 MB were swapped out and as much back in (estimate): up to 72% of the tokens moved or"
        in swapping
    )
    assert "moved or generated, not of time" in swapping
    assert "computed before" not in swapping
    gone = ("swap_bytes_estimate_total", "swapped_sequences")
    recomputing = " ".join(report(run(without(CALM, *gone), without(reading(), *gone)), 80).split())
    assert "Up to 72% of the tokens worked on had been computed before (estimate)." in recomputing
    assert "swap" not in recomputing


def test_the_incident_is_told_where_it_is_spoken_of_first() -> None:
    told = "In the incident (a fleet down for 47 minutes, its KV caches thrashing) about 2."
    assert said(reading()).count("a fleet down for 47 minutes") == 1
    assert told in said(reading())
    later = report(
        run(without(CALM, "tokens_per_preemption"), without(reading(), "tokens_per_preemption")), 80
    )
    assert "with the model of the incident (a fleet down for 47" in " ".join(later.split())


def test_a_swap_is_a_question_before_it_is_a_restart() -> None:
    assert "Find out why swap is on; turning it off takes a drain and a restart." in said(reading())


def test_what_was_asked_for_first_stands_in_the_report() -> None:
    assert "At 0:00 the engine was asked for 2.5 x the KV pool, with usage at 97%" in said(reading())
    early = replace(
        run(CALM, reading()), events=(Event(13.0, "demand", "asked"), Event(16.2, "memory", "full"))
    )
    words = " ".join(report(early, 80).split())
    assert "At 0:13 the engine was asked (kv_demand_ratio); 3 s later usage showed it." in words


def test_the_end_fits_on_a_screen_of_24_lines_with_the_prompt_below() -> None:
    long = reading(usage=1.0, waiting=59, preemptions=128, each=793)
    text = report(run(CALM, long, reading(usage=0, waiting=0, swapped=0, preemptions=128, each=793)), 80)
    assert len(f"{text}\n\n{NEXT}\n$ ".split("\n")) <= 24
