from __future__ import annotations

import math
import re
import tracemalloc
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from exporter import exposition
from exporter.exposition import Reader, Series
from tests.support import captures

Reading = tuple[Series, float]


def everything(series: Series) -> Series:
    return series


def read(body: bytes) -> list[Reading]:
    return Reader(everything).read(body)


def rejected(body: bytes) -> int:
    reader = Reader(everything)
    reader.read(body)
    return reader.rejected_lines


def series(name: str, **labels: str) -> Series:
    return Series(name, tuple(labels.items()))


def same(ours: list[Reading], theirs: list[Reading]) -> bool:
    """Equal, NaN to NaN and the sign of zero included."""
    return [(s, repr(v)) for s, v in ours] == [(s, repr(v)) for s, v in theirs]


def of_prometheus_client(text: str) -> list[Reading]:
    """What prometheus_client reads, in its order, under the names of the text.

    It gives a counter whose TYPE line lacks _total a name that isn't there; that is undone.
    """
    renamed = {f"{name}_total" for name in re.findall(r"^# TYPE (\S+) counter$", text, re.MULTILINE)} - set(
        re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)
    )
    return [
        (
            Series(
                sample.name.removesuffix("_total") if sample.name in renamed else sample.name,
                tuple(sample.labels.items()),
            ),
            float(sample.value),
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


# One line each.


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(b"up 1", series("up"), id="bare"),
        pytest.param(b"up{} 1", series("up"), id="empty braces"),
        pytest.param(b"up{ } 1", series("up"), id="blank braces"),
        pytest.param(b'up{a="b"} 1', series("up", a="b"), id="label"),
        pytest.param(b'up{a="b",} 1', series("up", a="b"), id="trailing comma"),
        pytest.param(b'up {a="b"} 1', series("up", a="b"), id="space before the braces"),
        pytest.param(b'up{a="b"}1', series("up", a="b"), id="no space after the braces"),
        pytest.param(b'up{ a = "b" , c = "d" } 1', series("up", a="b", c="d"), id="spaced labels"),
        pytest.param(b'up{b="1",a="2"} 1', series("up", b="1", a="2"), id="labels in the text's order"),
        pytest.param(b'up{a=""} 1', series("up", a=""), id="empty value"),
        pytest.param(rb'up{a="x\"y"} 1', series("up", a='x"y'), id="escaped quote"),
        pytest.param(rb'up{a="x\\"} 1', series("up", a="x\\"), id="escaped backslash before the quote"),
        pytest.param(rb'up{a="x\ny"} 1', series("up", a="x\ny"), id="escaped newline"),
        pytest.param(rb'up{a="x\\ny"} 1', series("up", a="x\\ny"), id="escaped backslash before an n"),
        pytest.param(rb'up{a="C:\dir"} 1', series("up", a="C:\\dir"), id="backslash before another letter"),
        pytest.param(b'up{a="}"} 1', series("up", a="}"), id="closing brace in a value"),
        pytest.param(b'up{a="{"} 1', series("up", a="{"), id="opening brace in a value"),
        pytest.param(b'up{a="b,c=d"} 1', series("up", a="b,c=d"), id="comma and equals in a value"),
        pytest.param(b'up{a="# HELP"} 1', series("up", a="# HELP"), id="hash in a value"),
        pytest.param(
            b'up{a="} 2 # {"} 1', series("up", a="} 2 # {"), id="what looks like a whole line's end"
        ),
        pytest.param(b'up{a="b  c "} 1', series("up", a="b  c "), id="spaces in a value"),
        pytest.param('up{a="größe"} 1'.encode(), series("up", a="größe"), id="UTF-8 in a value"),
        pytest.param(b'up{a="x\xff"} 1', series("up", a="x\ufffd"), id="invalid UTF-8 in a value"),
        pytest.param(b'vllm:up{le="+Inf"} 1', series("vllm:up", le="+Inf"), id="colon in the name"),
        pytest.param(b'{"my.metric"} 1', series("my.metric"), id="quoted name"),
        pytest.param(b'{"my.metric",a="b"} 1', series("my.metric", a="b"), id="quoted name and label"),
        pytest.param(
            b'{"my.metric","my.label"="b"} 1', Series("my.metric", (("my.label", "b"),)), id="quoted label"
        ),
        pytest.param(rb'{"my \"metric\""} 1', series('my "metric"'), id="quotes in a quoted name"),
        pytest.param(
            b'up{"my.label"="b"} 1', Series("up", (("my.label", "b"),)), id="quoted label of a plain name"
        ),
        pytest.param(b"  \tup 1", series("up"), id="indented"),
        pytest.param(b"up\t1", series("up"), id="tab"),
        pytest.param(b"up \t  1", series("up"), id="tabs and spaces"),
        pytest.param(b"up 1 \t", series("up"), id="trailing blanks"),
        pytest.param(b"up 1\r", series("up"), id="carriage return"),
        pytest.param(b'up{a="b"} 1\r', series("up", a="b"), id="carriage return after labels"),
        pytest.param(b"up 1 1395066363000", series("up"), id="timestamp"),
        pytest.param(b"up 1 -1", series("up"), id="timestamp before the epoch"),
        pytest.param(b"up 1 1520879607.789", series("up"), id="timestamp in seconds"),
        pytest.param(b"up\t1\t1395066363000", series("up"), id="timestamp after a tab"),
        pytest.param(b'up_total 1 # {trace_id="x"} 0.5 123', series("up_total"), id="exemplar"),
        pytest.param(b'up{le="1"} 1 # {a="b c"} 0.5', series("up", le="1"), id="exemplar with a space"),
        pytest.param(b'up{le="1"} 1 99 # {} 0.5', series("up", le="1"), id="timestamp and exemplar"),
        pytest.param(b"up_created 1", series("up_created"), id="_created is a series like others"),
    ],
)
def test_a_line_gives_one_reading_cold_and_warm(line: bytes, expected: Series) -> None:
    reader = Reader(everything)
    for _ in range(3):
        assert reader.read(line + b"\n") == [(expected, 1.0)]
        assert reader.rejected_lines == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("-0.0", -0.0),
        ("12345", 12345.0),
        ("+3", 3.0),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.0322907136e+011", 103229071360.0),
        ("9.75010481363281e-06", 9.75010481363281e-06),
        ("1E3", 1000.0),
        ("1.7960036095483952e+09", 1796003609.5483952),
        ("9007199254740993", 9007199254740992.0),
        ("+Inf", math.inf),
        ("Inf", math.inf),
        ("inf", math.inf),
        ("-Inf", -math.inf),
        ("-INFINITY", -math.inf),
        ("NaN", math.nan),
        ("nan", math.nan),
        ("1e999", math.inf),
    ],
)
def test_a_value_is_read_exactly_cold_and_warm(text: str, expected: float) -> None:
    reader = Reader(everything)
    for before in ("up 7\n", f"up {text}\n", "up 7\n"):
        reader.read(before.encode())
        assert same(reader.read(f"up {text}\n".encode()), [(series("up"), expected)])
    assert same(read(f"up {text}\n".encode()), [(series("up"), expected)])


@pytest.mark.parametrize(
    "line",
    [
        b"up",
        b"up ",
        b"1",
        b"nan nan nan nan",
        b"up one",
        b"up 1_0",
        b"up 0x10",
        b"up 1,5",
        b"up --1",
        b"up 1 2 3",
        b"up 1 soon",
        b"up 1 1_0",
        b"up # 1",
        b"up-1",
        b"up-1 1",
        b"my.metric 1",
        b"4up 1",
        b"\xc3\xbcp 1",
        b"up\x0b1",
        b'up{a="b" 1',
        b'up{a="b} 1',
        b'up{a="b\\"} 1',
        b"up{a=b} 1",
        b"up{a} 1",
        b'up{a="b"c="d"} 1',
        b'up{a="b",,c="d"} 1',
        b'up{,a="b"} 1',
        b'up{="b"} 1',
        b'up{a="b",a="c"} 1',
        b'up{__name__="down"} 1',
        b'{__name__="up"} 1',
        b'up{"down"} 1',
        b'{"up","down"} 1',
        b'{""} 1',
        b'up{""="b"} 1',
        b'{a="b"} 1',
        b"{} 1",
        b'up{a="b"}',
        b'up{a="b"} {}',
        b'up {count:1,sum:2} # {a="b"} 1',
        b"\x00",
        b"\xff\xfe",
    ],
)
def test_a_line_without_a_readable_sample_is_skipped_and_counted(line: bytes) -> None:
    reader = Reader(everything)
    reader.read(b"first 1\nup 2\nlast 3\n")
    for _ in range(2):  # after a good line in its place, and after itself
        assert reader.read(b"first 1\n" + line + b"\nlast 3\n") == [
            (series("first"), 1.0),
            (series("last"), 3.0),
        ]
        assert reader.rejected_lines == 1
    assert rejected(line + b"\n") == 1


# Whole bodies.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"\r\n \n\t\n",
        b"# HELP up Whether it is up.\n# TYPE up gauge\n",
        b"#\n#up 1\n  # up 1\n#TYPE\n# TYPE up\n",
        b"# EOF\n",
        b"# EOF",
        b"# HELP up \xff\xfe\n",
    ],
)
def test_a_body_without_samples_is_empty_and_nothing_is_rejected(body: bytes) -> None:
    assert read(body) == []
    assert rejected(body) == 0


def test_types_may_be_missing_unknown_or_wrong() -> None:
    body = b"a 1\n# TYPE b unknown\nb 2\n# TYPE c histogram\nc 3\n# TYPE d_total\nd_total 4\n"
    assert read(body) == [
        (series(name), value) for name, value in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("d_total", 4.0))
    ]


def test_a_series_that_stands_there_twice_is_reported_twice_in_the_texts_order() -> None:
    reader = Reader(everything)
    assert reader.read(b"up 1\ndown 2\nup 3\n") == [
        (series("up"), 1.0),
        (series("down"), 2.0),
        (series("up"), 3.0),
    ]
    assert reader.read(b"up 1\ndown 2\nup 4\n") == [
        (series("up"), 1.0),
        (series("down"), 2.0),
        (series("up"), 4.0),
    ]


def test_every_line_may_end_in_carriage_return_and_newline() -> None:
    body = b'# HELP up Up.\r\nup{a="b"} 1.0\r\n\r\ndown 2 1395066363000\r\n# EOF\r\n'
    assert read(body) == [(series("up", a="b"), 1.0), (series("down"), 2.0)]
    assert rejected(body) == 0


def test_what_was_cut_is_never_reported_as_a_value() -> None:
    body = b'first 1\nup{a="b"} 1234\n'
    reader = Reader(everything)
    assert reader.read(body) == [(series("first"), 1.0), (series("up", a="b"), 1234.0)]
    for length in range(len(b"first 1\n"), len(body)):
        assert reader.read(body[:length]) == [(series("first"), 1.0)]
        assert reader.rejected_lines == (length > len(b"first 1\n"))
    for length in range(len(b"first 1\n")):
        assert reader.read(body[:length]) == []


def test_only_the_last_reads_rejected_lines_are_counted() -> None:
    reader = Reader(everything)
    assert reader.rejected_lines == 0
    for body, expected in ((b"a 1\n?\n?\n", 2), (b"a 2\n?\n?\n", 2), (b"a 3\n?\n", 1), (b"a 4\n", 0)):
        reader.read(body)
        assert reader.rejected_lines == expected


def test_a_sample_without_labels_may_become_one_with_labels_in_the_same_place() -> None:
    # The text of the first is a beginning of the second's.
    reader = Reader(everything)
    reader.read(b"up 1\n")
    assert reader.read(b'up {a="b"} 1\n') == [(series("up", a="b"), 1.0)]
    assert reader.read(b"up 3 4\n") == [(series("up"), 3.0)]


# Wanted and unwanted.


def test_only_wanted_series_come_out_and_each_is_interpreted_once() -> None:
    asked: Counter[Series] = Counter()

    def interpret(one: Series) -> str | None:
        asked[one] += 1
        return one.name.upper() if one.name != "no" else None

    reader = Reader(interpret)
    for value in range(5):
        extra = b"late 1\n" if value > 2 else b""
        body = b'yes{a="1"} %d\nno %d\nyes{a="2"} %d 1395066363%03d\n' % (value, value, value, value)
        expected = [("YES", float(value)), ("YES", float(value))] + [("LATE", 1.0)] * (value > 2)
        assert reader.read(body + extra) == expected
    assert asked == {series("yes", a="1"): 1, series("no"): 1, series("yes", a="2"): 1, series("late"): 1}


def test_a_falsy_slot_is_wanted() -> None:
    reader = Reader(lambda _: 0)
    assert reader.read(b"up 1\n") == [(0, 1.0)]
    assert reader.read(b"up 2\n") == [(0, 2.0)]


def test_what_interpret_raises_comes_through_and_the_reader_stays_good() -> None:
    def interpret(one: Series) -> str:
        if one.labels:
            raise LookupError(one.name)
        return one.name

    reader = Reader(interpret)
    before = b"good 1\nbetter 2\n"
    reader.read(before)
    with pytest.raises(LookupError):
        reader.read(b'good 3\nbetter {a="b"} 4\n')
    assert reader.read(before) == [("good", 1.0), ("better", 2.0)]


def test_the_list_is_the_callers_to_change() -> None:
    reader = Reader(everything)
    reader.read(b"up 1\n").clear()
    assert reader.read(b"up 1\n") == [(series("up"), 1.0)]


# Memory and time.


def test_labels_that_never_come_twice_do_not_fill_the_memory() -> None:
    body = b'vllm:lora_requests_info{running_lora_adapters="%d-%d"} 1.8e+09 %d # {trace_id="%d"} 1\n'

    def churn(scrapes: range) -> None:
        for scrape in scrapes:
            readings = reader.read(b"up 1\n" + b"".join(body % (scrape, n, scrape, n) for n in range(500)))
            assert len(readings) == 501

    with patch.object(exposition, "_REMEMBERED_BYTES", 1 << 18):
        reader = Reader(lambda one: one.name)
        churn(range(10))
        tracemalloc.start()
        try:
            churn(range(10, 60))
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # 25,000 series were read in; twice what may be remembered, and the last body, are left at most.
    assert kept < 1 << 20


def test_series_that_stay_are_remembered_while_others_come_and_go() -> None:
    asked: Counter[str] = Counter()

    def interpret(one: Series) -> str:
        asked[one.name] += 1
        return one.name

    with patch.object(exposition, "_REMEMBERED_BYTES", 4000):
        reader = Reader(interpret)
        for scrape in range(200):
            late = b"late 1\n" if scrape > 100 else b""
            reader.read(b'stays 1\n%sgoes{id="%d"} 1\n' % (late, scrape))
        assert asked["stays"] == 1
        assert asked["goes"] == 200
        assert asked["late"] <= 2  # once more where it came when there was no room

        for _ in range(20):  # with room again, an absence is no reason to forget
            reader.read(b"one 1\n")
            reader.read(b"two 1\nstays 1\n")
        assert asked["one"] <= 2
        assert asked["two"] <= 2


def test_ten_megabytes_are_read_whole() -> None:
    line = 'vllm:request_success_total{{engine="0",finished_reason="stop",model_name="model-{n}"}} {n}.0\n'
    lines = [line.format(n=n) for n in range(120_000)]
    body = "".join(lines).encode()
    assert len(body) > 10_000_000
    reader = Reader(lambda one: one.labels[2][1])
    for _ in range(2):
        readings = reader.read(body)
        assert len(readings) == 120_000
        assert readings[77_777] == ("model-77777", 77_777.0)
        assert reader.rejected_lines == 0


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "line",
    [
        b"{" * 1_000_000,
        b'up{a="' * 200_000,
        b'"' * 1_000_001,
        b"up{" + b'"' * 1_000_001,
        b"up{" + b'"\\' * 500_000,
        b'up{a="' + b"\\" * 1_000_001 + b'"} 1',
        b'up{a="b"' + b" " * 1_000_000 + b"1",
        b" " * 1_000_000 + b"up",
        b"a" * 1_000_000,
        b"up " + b"1" * 1_000_000 + b"x",
        b"up{" + b'a="",' * 200_000 + b"} 1",
        b"up 1" + b" 1" * 500_000,
    ],
    ids=range(12),
)
def test_a_hostile_line_takes_no_more_than_linear_time(line: bytes) -> None:
    assert rejected(line + b"\n") == 1


# Properties.

name_text = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)
label_name = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,6}", fullmatch=True)
label_value = st.one_of(
    st.text(st.sampled_from('ab "\\\n{},=# é\t'), max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
any_float = st.one_of(st.floats(), st.integers(0, 10**6).map(float))


def render_value(draw: st.DrawFn, value: float) -> str:
    if math.isnan(value):
        return draw(st.sampled_from(["NaN", "nan", "+NaN"]))
    if math.isinf(value):
        sign = "-" if value < 0 else draw(st.sampled_from(["", "+"]))
        return sign + draw(st.sampled_from(["Inf", "inf", "Infinity"]))
    text = draw(st.sampled_from([repr(value), f"{value:.17e}", f"{value:.17E}"]))
    return re.sub(r"e([+-])(\d\d)$", r"e\g<1>0\2", text) if draw(st.booleans()) else text


def render_labels(draw: st.DrawFn, labels: dict[str, str]) -> str:
    if not labels:
        return draw(st.sampled_from(["", "{}"]))
    comma, equals = draw(st.sampled_from([",", ", ", " ,"])), draw(st.sampled_from(["=", " = "]))
    terms = [
        name + equals + '"' + value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") + '"'
        for name, value in labels.items()
    ]
    return "{" + comma.join(terms) + draw(st.sampled_from(["", ",", " "])) + "}"


@st.composite
def bodies_and_samples(draw: st.DrawFn) -> tuple[str, list[Reading]]:
    """A body in the text format, with every liberty the format allows, and the samples in it."""
    lines: list[str] = []
    samples: list[Reading] = []
    for name in draw(st.lists(name_text, max_size=5, unique=True)):
        if draw(st.booleans()):
            lines.append(f"# HELP {name} It is {{so}} \\\\ and \\n so.")
        if draw(st.booleans()):
            lines.append(
                f"# TYPE {name} {draw(st.sampled_from(['gauge', 'untyped', 'histogram', 'summary']))}"
            )
        for labels in draw(st.lists(st.dictionaries(label_name, label_value, max_size=3), max_size=4)):
            value = draw(any_float)
            blank = draw(st.sampled_from([" ", "  ", "\t"]))
            line = draw(st.sampled_from(["", "", " ", "\t"])) + name + render_labels(draw, labels)
            line += blank + render_value(draw, value)
            line += draw(st.sampled_from(["", "", blank + "1395066363000"]))
            if blank == " ":
                line += draw(st.sampled_from(["", "", ' # {trace_id="x y"} 0.5 123']))
            lines.append(line)
            samples.append((Series(name, tuple(labels.items())), value))
        lines.extend(draw(st.lists(st.sampled_from(["", " ", "# a comment", "#"]), max_size=2)))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return "".join(line + end for line in lines), samples


@given(bodies_and_samples(), st.data())
def test_every_spelling_is_read_as_it_was_meant_and_as_prometheus_client_reads_it(
    body_and_samples: tuple[str, list[Reading]], data: st.DataObject
) -> None:
    text, samples = body_and_samples
    wanted = data.draw(st.sets(st.sampled_from(sorted({s.name for s, _ in samples}) or ["none"])))
    reader = Reader(lambda one: one if one.name in wanted else None)
    expected = [(s, v) for s, v in samples if s.name in wanted]
    for _ in range(2):
        assert same(reader.read(text.encode()), expected)
        assert reader.rejected_lines == 0
    assert same([(s, v) for s, v in of_prometheus_client(text) if s.name in wanted], expected)


spellings = st.sampled_from(
    [
        *(
            b"up",
            b"down",
            b'up{a="b"}',
            b'up {a="b"}',
            b'up{a="c d"}',
            b'{"my.metric"}',
            b" up",
            b"no",
            b'no{a="b"}',
        ),
        *(b"", b"#", b"# HELP up", b"up{", b'up{a="b"', b'up{a="b",a="c"}', b"\xff"),
    ]
)
tails = st.sampled_from(
    [
        *(b" 1", b" 2", b" 3.5", b" NaN", b" -Inf", b" 1e+011", b" 1\r", b"\t1", b"  1", b"1", b" "),
        *(
            b"",
            b" 1 99",
            b" 2 99",
            b"\t1\t99",
            b" 1_0",
            b" x",
            b' 1 # {a="b"} 2',
            b' {a="b"} 1',
            b' {a="b"}',
            b" 1 2 3",
        ),
    ]
)
line_texts = st.one_of(st.builds(bytes.__add__, spellings, tails), st.binary(max_size=8))


@st.composite
def successive_bodies(draw: st.DrawFn) -> list[bytes]:
    """Texts as one endpoint would give them: each like the one before but for a few lines, perhaps cut."""
    lines = draw(st.lists(line_texts, max_size=8))
    bodies = []
    for _ in range(draw(st.integers(1, 5))):
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.integers(0, len(lines)))
            lines[place : place + draw(st.integers(0, 1))] = draw(st.lists(line_texts, max_size=1))
        body = b"".join(line + b"\n" for line in lines)
        bodies.append(body[: draw(st.integers(0, len(body)))] if draw(st.integers(0, 4)) == 0 else body)
    return bodies


@settings(max_examples=400)
@given(successive_bodies(), st.sampled_from([0, 300, 700, 1 << 20]))
@example([b"up 1\n", b"up \n"], 1 << 20)
@example([b"up 1\n", b"1\n"], 1 << 20)
@example([b"no 1\n", b'no {a="b"} 1\n'], 1 << 20)
@example([b'no{a="b"} 1\n', b'no{a="b"} x\n', b'no{a="b"} 1\n'], 1 << 20)
def test_a_warm_reader_reads_exactly_what_a_cold_one_does(bodies: list[bytes], remembered: int) -> None:
    def interpret(one: Series) -> Series | None:
        return None if one.name == "no" else one

    with patch.object(exposition, "_REMEMBERED_BYTES", remembered):
        warm = Reader(interpret)
        for body in bodies:
            cold = Reader(interpret)
            assert same(warm.read(body), cold.read(body))
            assert warm.rejected_lines == cold.rejected_lines


fragments = st.sampled_from(
    [
        b"up",
        b"{",
        b"}",
        b'"',
        b"=",
        b",",
        b"\\",
        b" ",
        b"\t",
        b"\n",
        b"\r",
        b"#",
        b"1",
        b".",
        b"e",
        b"+",
        b"-",
        b"_",
        b"\xff",
    ]
)


@settings(max_examples=400)
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.lists(fragments, max_size=30).map(b"".join)), max_size=4)
)
def test_no_bytes_make_it_raise(bodies: list[bytes]) -> None:
    reader = Reader(everything)
    for body in bodies:
        for one, value in reader.read(body):
            assert one.name
            assert isinstance(value, float)
        assert 0 <= reader.rejected_lines <= body.count(b"\n") + 1


# Where it differs from prometheus_client on purpose.


def test_names_stay_those_of_the_text() -> None:
    # A dialect knows an engine's names; one invented on the way would have to be known as well.
    text = "# TYPE llamacpp:n_tokens_max counter\nllamacpp:n_tokens_max 1877\n"
    (family,) = text_string_to_metric_families(text)
    assert family.samples[0].name == "llamacpp:n_tokens_max_total"
    assert read(text.encode()) == [(series("llamacpp:n_tokens_max"), 1877.0)]


def test_a_bad_line_costs_itself_only() -> None:
    text = "good 1\nbad one\nbetter 2\n"
    with pytest.raises(ValueError, match="one"):
        list(text_string_to_metric_families(text))
    assert read(text.encode()) == [(series("good"), 1.0), (series("better"), 2.0)]


def test_an_unfinished_last_line_is_dropped() -> None:
    # It reads the 12 of a 1234 that was cut.
    assert of_prometheus_client("first 1\nup 12") == [(series("first"), 1.0), (series("up"), 12.0)]
    assert read(b"first 1\nup 12") == [(series("first"), 1.0)]


def test_more_after_the_value_than_a_timestamp_is_rejected() -> None:
    # It ignores the middle of these: the line is damaged, so is perhaps the value.
    assert of_prometheus_client("up 1 2 3\n") == [(series("up"), 1.0)]
    assert read(b"up 1 2 3\n") == []


def test_the_name_as_a_label_is_rejected() -> None:
    # The format has no such spelling, and its meaning beside a name would be anybody's guess.
    assert of_prometheus_client('{__name__="up"} 1\n') == [(series("up"), 1.0)]
    assert read(b'{__name__="up"} 1\n') == []


# Real engines.


@pytest.mark.parametrize("name", captures.NAMES)
def test_every_scrape_of_a_recording_reads_as_prometheus_client_reads_it(name: str) -> None:
    reader = Reader(everything)
    scrapes = list(captures.recording(name).scrapes())
    assert scrapes
    for entry, body in scrapes:
        assert len(body) == entry["bytes"]
        assert same(reader.read(body), of_prometheus_client(body.decode()))
        assert reader.rejected_lines == 0
