"""Writes docs/alerts.md from the pack: ``python -m alerts.reference docs/alerts.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from alerts.catalogue import ALERTS, GROUPS, RECORDINGS
from alerts.limits import limits, meaning, span
from alerts.pack_settings import AlertSettings, PackSettings
from alerts.thresholds import THRESHOLDS, Thresholds

_HEAD = """\
# Alerts

Written by `make docs` from the pack (`alerts/`); a test fails when it is stale.

`deploy/prometheus/` holds the pack as a rule file for Prometheus (2.42 or later), as a PrometheusRule for its operator,
and an example for Alertmanager. To have it otherwise write a file of settings and render it anew:

```yaml
# pack.yml
thresholds: {kv_usage_full_ratio: 0.95}      # base units; a ratio is 0 to 1
cluster_labels: [cluster]                    # kept by every grouping and every join
selector: job="thrashold"                    # put into every selector
runbooks: https://wiki.example/runbooks      # NAME.md is put behind it
alerts:
  TailWaste: {disabled: true}
  RetryStorm: {severity: warning, for_seconds: 120}
```

```sh
thrashold alerts render --config pack.yml -o rules/   # --check: is what is there still what it would be?
thrashold alerts explain KvThrashing
thrashold alerts list
```

The same file goes to boards (`thrashold dashboards render --config`), to backtests and to [triage](triage.md)
(`--thresholds`), so that all of them draw the same lines.

Into Prometheus and Alertmanager:

```yaml
# prometheus.yml
global: {scrape_interval: 15s, evaluation_interval: 15s}
rule_files: [deploy/prometheus/thrashold.rules.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:9093"]}]}]}
scrape_configs:
  - job_name: thrashold
    static_configs: [{targets: ["worker-7:9807", "worker-8:9807"], labels: {cluster: paris}}]
```

```sh
promtool check config prometheus.yml
amtool check-config deploy/prometheus/alertmanager.example.yml
```

Of the example take `route` and `inhibit_rules` as they are. Its receivers are places to put yours: they post to
127.0.0.1:9808, where [the desk](desk.md) listens, and nobody where none runs. `page` is what wakes somebody, `tell` a
channel, and `watchdog` something outside that calls when nothing has come for some minutes. `desk` is nobody: a route
of its own tells the desk of all that `page` and `tell` hear, each minute. For Prometheus's operator: `kubectl apply -f
deploy/prometheus/thrashold.prometheusrule.yml`, with the labels that its `ruleSelector` wants. To see alerts fire
before they have to: [drill.md](drill.md#how-to-run-a-drill).

What **pages** is pain, with its cause: users wait, a tenth of the fleet is gone, most of the work is thrown away.
Causes by themselves are **warnings**, and so is one GPU or one engine of many that is gone: the others carry its
requests. **info** reaches nobody. In Alertmanager's example an alert is silent while one that explains it fires for the
same subject, and its consequences are in its whole cluster. A page goes out within seconds; warnings wait for two
minutes, and go together by cluster and cause; that one is over can be looked up.

**An incident is one story for whoever is woken.** Engines that thrash are one page of their cluster, however many they
are and whatever they do with what they throw out: what else there is to say of them comes half an hour later, and so
does that it is over. All that says that users wait is another, told anew each ten minutes if at all. Any other page
goes out by itself, beside these and at once: what fails in another way is news. While many engines are stuck, and for
a quarter of an hour after, what follows from it is silent, burn rates among it. Where users wait even then,
`UsersStillWait` goes on with the same page for up to an hour, so that nobody reads that it is over; what is left after
that pages by its own name. Engines that go down once many have been stuck for five minutes are being started anew by
whoever was woken: for a quarter of an hour they are no capacity that is gone. One that went down before is.

Rules read gauges through a minute of failed scrapes, group by what tells one subject from another, so that a sidecar
that is scraped twice makes one alert, and keep the cluster's labels in every join.
"""
_RECORDED = """\
## What is recorded

Series that Prometheus keeps for alerts and boards, in the same rule files. Names are `level:metric:operations`;
`cluster` is what `cluster_labels` tells apart, whatever they are called.

Objectives are a **fleet's**: what `cluster_labels` tells apart has one budget for first tokens and one for the pace of
tokens. A page says that the fleet's users are let down, and names the three engines with most misses. With a budget for
each worker two slow minutes of one of a thousand would wake somebody though hardly a user noticed; and a worker in
trouble has alerts of its own, which say what it is. The price: where few of many engines are slow the page comes later
or not at all, since 14.4 times a budget of 1 % is a miss in seven. Several fleets in one cluster: give them a label and
put it into `cluster_labels`.

Only five minutes are read from the workers' counters. Longer windows are means of that record, misses and events apart:
restarts are seen once, gaps of Prometheus are in neither, and three days cost the same for ten workers as for a
thousand. A window reaches back as far as there is a record: in the first three days that is less than its name says.

What was there, and is asked for hours later, is recorded each minute: an engine or a sidecar that lived for less isn't
missed when it is gone. Fleet sums and full PCIe links are recorded each 30 s.

What several alerts ask is asked once, and only who is ill is recorded: who thrashes, swaps, stands still, is down. The
alert that pages on it stands in the same group behind it and reads it at the same instant.

What the pack costs: `python -m tests.bench rules` lets a real Prometheus with one core evaluate all of it for 1,000
workers of eight GPUs each, 591 series a worker, of which the pack reads 93. One evaluation of all of it took 1.2 s of
CPU, and what falls due in 15 s, with the groups that are evaluated each 30 s or each minute, 0.7 s; that is without
scraping, storing and telling, and beside other work (a load average of 9 on two cores).
Prometheus spends some 6 us on each series that a rule reads, and as much again on one that it groups: most of what is
left is that each of them is read once or twice. The dearest are the records of PCIe links, 0.2 s each: 16 series a
worker, two for each GPU, and 8 that say which engine runs on it; then those of lost GPUs and of downgraded links,
0.05 s each, with one series for each GPU.
"""


def reference() -> str:
    """The page."""
    lines = [_HEAD, "## The alerts\n"]
    for group, alerts in GROUPS.items():
        lines += [
            f"### {group}\n",
            "| alert | severity | cause | after | what it says |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| [{alert.name}](runbooks/{alert.name}.md) | {alert.severity.value} | `{alert.cause.value}` | "
            f"{alert.for_seconds} s | {alert.meaning} |"
            for alert in alerts
        ]
        lines.append("")
    lines.append(_RECORDED)
    lines += ["| series | labels | what it is |", "|---|---|---|"]
    lines += [
        f"| `{each.name}` | {', '.join(each.labels)} | {each.meaning} |"
        for group in RECORDINGS.values()
        for each in group.recordings
    ]
    lines += ["", "## The settings\n", "| key | |", "|---|---|"]
    lines += [f"| `{name}` | {meaning(metas)} |" for name, metas in limits(PackSettings)]
    lines += [f"| `alerts.NAME.{name}` | {meaning(metas)} |" for name, metas in limits(AlertSettings)]
    lines += ["", "## The thresholds\n", "| key | shipped | may be | why |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {getattr(THRESHOLDS, name):g} | {span(metas)} | {meaning(metas)} |"
        for name, metas in limits(Thresholds)
    ]
    causes = {alert.cause: None for alert in ALERTS.values()}
    lines += ["", "## The causes\n", "| cause | |", "|---|---|"]
    lines += [f"| `{cause.value}` | {cause.sentence} |" for cause in causes]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
