"""The page of causes, from the templates: ``python -m analysis.cascade.reference docs/causes.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from alerts.causes import Cause
from analysis.cascade.catalogue import NO_TEMPLATE, TEMPLATES
from analysis.cascade.template import LEAST_SCORE, Link, Role, Template

_HEAD = f"""# Causes, and what shows them

Made by `make docs` from `analysis/cascade/`; don't edit it.

An analysis holds each cause to history: to what a sidecar's recorder or a Prometheus kept, whichever step it has.
What is *necessary* has to have held, or this isn't the cause. What *supports* it comes before or after where it is the
cause, in this order, and makes the verdict surer. What speaks *against* it takes some of that away where it held
meanwhile. A score from {LEAST_SCORE} on means that the cause is held to be there; the confidence beside it says how
much of what it needs was watched at all.

Of several causes those come first that no other explains: a queue that a frozen engine leaves behind is a consequence.
What a cause *brings about* comes after it wherever both are found; what it *may bring about* can have come by itself.
Consequences are told all the same, with what explains them. That nothing is unusual is an answer, and that too little
was recorded is one.

Those that as many others explain come in the order of how many causes bring them about as a rule: a queue says less
than clients that come again.

When a cause began is an estimate: alerts see trailing minutes. Where a sign was there from the beginning on without a
break, its begin is the cause's; else it is sought before the evidence where what shows the beginning first starts to
move, all of it together (what comes, what engines have of it, how much of their pools that takes, for one). A cause
begins no later than what it alone explains. How near that comes to the truth is in
[evaluation-causes.md](evaluation-causes.md).
"""


def page() -> str:
    """As Markdown."""
    parts = [_HEAD, *(_section(template) for template in TEMPLATES.values())]
    parts += [f"## {cause}\n\n{cause.sentence} No template: {why}.\n" for cause, why in NO_TEMPLATE.items()]
    return "\n".join(parts)


def _section(template: Template) -> str:
    lines = [f"## {template.cause}", "", template.cause.sentence, ""]
    lines += list(_links(template.links))
    if template.explains:
        lines += ["", f"It brings about: {_listed(template.explains)}."]
    if template.may_explain:
        lines += ["", f"It may bring about: {_listed(template.may_explain)}."]
    return "\n".join(lines) + "\n"


def _links(links: Iterable[Link]) -> Iterator[str]:
    number = 0
    for link in links:
        if link.role is Role.AGAINST:
            yield f"- against it: {link.words} (takes {link.weight:.0%} of the score)"
            continue
        number += 1
        held = f", for {link.least_seconds:.0f} s" if link.role is Role.NECESSARY else ""
        yield f"{number}. {link.words}{' (**necessary**' + held + ')' if held else ''}"


def _listed(causes: Iterable[Cause]) -> str:
    order = list(Cause)
    return ", ".join(f"`{cause}`" for cause in sorted(causes, key=order.index))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
