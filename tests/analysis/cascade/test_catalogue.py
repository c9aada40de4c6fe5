"""Templates as a whole: each cause has one or a reason, and no cause is, round a corner, its own consequence."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.runbooks import BASE
from analysis.cascade.catalogue import NO_TEMPLATE, TEMPLATES
from analysis.cascade.reference import page
from analysis.cascade.template import Link, Role, Template
from drill.scenarios.catalogue import SCENARIOS
from tests.alerts.test_pack import NO_SCENARIO, ROOT


def test_every_cause_has_a_scenario_a_template_an_alert_and_a_runbook_or_a_reason() -> None:
    drilled = {scenario.cause for scenario in SCENARIOS.values()}
    matrix = {
        cause: {
            "scenario": cause in drilled or cause in NO_SCENARIO,
            "template": (cause in TEMPLATES) != (cause in NO_TEMPLATE),
            "alert": any(alert.cause is cause for alert in ALERTS.values()),
            "runbook": any(
                alert.cause is cause and (ROOT / BASE / f"{alert.name}.md").is_file()
                for alert in ALERTS.values()
            ),
        }
        for cause in Cause
    }
    assert {cause: row for cause, row in matrix.items() if not all(row.values())} == {}


def test_the_committed_page_is_fresh() -> None:
    assert (ROOT / "docs" / "causes.md").read_text(encoding="utf-8") == page(), "run `make docs`"


def test_no_cause_is_a_consequence_of_its_own_consequences() -> None:
    as_a_rule = {cause: template.explains for cause, template in TEMPLATES.items()}
    assert len(tuple(TopologicalSorter(as_a_rule).static_order())) >= len(TEMPLATES)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_what_is_said_of_consequences_is_said_once_and_of_templates(template: Template) -> None:
    assert not template.explains & template.may_explain
    assert template.explains | template.may_explain <= set(TEMPLATES)


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=list(TEMPLATES))
def test_its_words_are_clauses_that_a_report_can_use(template: Template) -> None:
    for link in template.links:
        assert link.words[0].islower() or link.words.startswith("KV")
        assert not link.words.endswith(".")
        assert link.role is Role.AGAINST or link.weight == 1.0


def test_a_template_without_anything_necessary_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a necessary link"):
        Template(Cause.OVERLOAD, (Link("it was so", lambda _: None),))


def test_a_template_that_explains_itself_is_refused() -> None:
    link = Link("it was so", lambda _: None, Role.NECESSARY)
    with pytest.raises(ValueError, match="can't explain itself"):
        Template(Cause.OVERLOAD, (link,), may_explain=frozenset({Cause.OVERLOAD}))


@pytest.mark.parametrize("values", [{"weight": 0.0}, {"weight": 1.5}, {"lag_seconds": (5.0, 1.0)}])
def test_a_link_that_can_not_be_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="it was so"):
        Link("it was so", lambda _: None, **values)  # type: ignore[arg-type]
