"""A page in one file: what is on it, in order, and nothing from elsewhere.

    document("What was unusual", [heading("Fleet"), table(("engine", "since"), rows), charts_html(charts)])

Whatever is put in is text: labels come from other people's metrics, and one with markup in it stays a label. The
page's policy lets no script run but the page's own, by their digests, and nothing be loaded from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from analysis.page.instant import instant

HERE = files("analysis.page")
MOST_BYTES = 2_000_000
"""What a page may have altogether, so that it can be sent; bokeh's own script is 1.27 MB of it."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a page. ``draws``: it has charts, so that the page needs what draws them."""

    html: Markup
    draws: bool = False


class Tone(StrEnum):
    """What a note is about."""

    PLAIN = ""
    ALARM = "alarm"
    FINE = "fine"


@cache
def templates() -> Environment:
    """The one environment: everything is escaped, and a name that is missing is an error."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    made.filters["instant"] = instant
    return made


def template(file: str, /, **values: object) -> Markup:
    """A template of this folder, filled in."""
    return Markup(templates().from_string((HERE / file).read_text(encoding="utf-8")).render(**values))  # noqa: S704 - made by autoescape


def heading(text: str, level: int = 2) -> Block:
    """A title inside the page: ``level`` 2 or 3."""
    if level not in {2, 3}:
        raise ValueError(f"a heading of level {level}: there are 2 and 3")
    return Block(Markup(f"<h{level}>{{}}</h{level}>").format(text))  # noqa: S704 - text is escaped by format


def paragraph(text: str) -> Block:
    """One of words."""
    return Block(Markup("<p>{}</p>").format(text))


def note(text: str, tone: Tone = Tone.PLAIN) -> Block:
    """What has to be seen."""
    return Block(Markup('<p class="note {}">{}</p>').format(tone.value, text))


def listing(lines: Iterable[str], *, ordered: bool = False) -> Block:
    """One line each; numbered where their order says something."""
    items = Markup("\n").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Block((Markup("<ol>{}</ol>") if ordered else Markup("<ul>{}</ul>")).format(items))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", numeric: Iterable[int] = ()
) -> Block:
    """Rows under headers. ``numeric``: places of columns that stand to the right. None in a cell: not known."""
    right = frozenset(numeric)
    return Block(
        template(
            "table.html.j2",
            caption=caption,
            columns=[(name, place in right) for place, name in enumerate(columns)],
            rows=[[(_cell(value), place in right) for place, value in enumerate(row)] for row in rows],
        )
    )


def document(title: str, blocks: Sequence[Block], under: Sequence[str] = ()) -> str:
    """The whole page, HTML. ``under``: lines below the title: of what, from when to when, made by which release."""
    scripts = [Markup(text) for text in _scripts()] if any(block.draws for block in blocks) else []  # noqa: S704 - our own
    return str(
        template(
            "page.html.j2",
            title=title,
            under=under,
            blocks=blocks,
            scripts=scripts,
            style=Markup((HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own
            policy=_policy(scripts),
        )
    )


@cache
def _scripts() -> tuple[str, ...]:
    """What draws charts: bokeh's, then ours. Nothing but `</` could end a script early."""
    from bokeh.resources import Resources  # noqa: PLC0415 - a page of words does without

    library = Resources(mode="inline", components=["bokeh"], minified=True).js_raw[0]
    return library.replace("</script", "<\\/script"), (HERE / "page.js").read_text(encoding="utf-8")


def _policy(scripts: Sequence[str]) -> str:
    digests = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {digests or chr(39) + 'none' + chr(39)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _cell(value: object) -> object:
    return "not known" if value is None else value
