"""Writes ``docs/desk.md`` from the settings: ``python -m analysis.desk.reference docs/desk.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import inspect

from analysis.desk.settings import DEFAULT_LISTEN, DeskSettings, WorkerSettings
from analysis.desk.store import LAPSE_HOURS
from exporter.settings_schema import environment_names

_HEAD = f"""\
# The desk

Somebody is woken at 03:00 and opens a laptop. The desk has been told by the same Alertmanager, has read the flight
recorders of the engines that the alerts name, and has the report ready: what happened, in which order, why, and how
sure that is.

```
pip install 'thrashold[analysis]'
thrashold desk --config desk.yaml            # then http://{DEFAULT_LISTEN}/
```

```yaml
# desk.yaml
data: /var/lib/thrashold/desk
webhook_token_file: /run/secrets/webhook-token
workers:
  - sidecar: http://worker-7:9807            # started with --recorder; user and password as for an engine
    engines: [worker-7]                      # as the label `engine` of their alerts has it
    triage: http://worker-7:8000             # the engine itself, for a triage at once
  - http://worker-8:9807                     # a sidecar's URL alone: asked about every incident
prometheus: http://prometheus:9090           # history of engines that are not listed here
```

Alertmanager sends to `/alerts`, as the example in `deploy/prometheus/` has it (`desk` in the settings of the alerts
says where it is), with the token:

```yaml
receivers:
  - name: desk
    webhook_configs:
      - url: http://desk:9808/alerts
        send_resolved: true
        http_config: {{authorization: {{credentials_file: /run/secrets/webhook-token}}}}
```

(`desk_token_file` in the settings of the alerts writes that line.)

![An incident at the desk, with its report](img/desk-incident.png)

## What it does

- **An incident** is what a cluster's alerts tell between the first that fires and the last that is over. One that
  comes within `join_seconds` of the end goes on with it; after one that somebody has closed a new one begins. An
  alert is known by its fingerprint and its start: told again it changes nothing, so Alertmanager may repeat itself
  as it likes. What it hasn't told again for {LAPSE_HOURS} hours is taken as over, since not every receiver tells of
  ends (`send_resolved`); told again after all, it goes on, and its incident with it.
- **A report** is made when an incident opens, anew while it goes on (after `report_again_seconds`, then whenever it
  has gone on for twice as long, at least each hour; half a minute after a rule that is new to it fires), and once
  more when it is over, or when somebody asks for it: an alert of three hours is told after 5, 10, 20 minutes and so
  on, and at its end whole. It looks from `look_back_seconds` before the first alert until now, `report_hours` (6) of
  the incident at most: a longer one is told by how it began, and the page says so. History comes from the flight
  recorders of the engines that its alerts name, eight of them and sixteen hours of all together at most; for more
  hours than that from Prometheus, where one is set, and so for engines that no recorder is known of; of a server
  that knows more than 50 sidecars only those of these engines are read. It is made by a process of its own, one
  after another. What it does is told on the page as it happens.
- **Pages**: the list, an incident with its alerts, progress and report, on a phone too. It can be closed with a note.
- **For programs**: `GET /api/v1/incidents`, `/api/v1/incidents/N`, `/api/v1/incidents/N/events` (server-sent events),
  `POST .../close?note=` and `.../report`; described by `/openapi.json`.
- **The watchdog**: when Alertmanager has sent none for five minutes, or none at all in the desk's first five, the list
  says that alerts may not come through.
- **Grafana**: with `grafana` set an incident is an annotation, tagged `thrashold`, from its first alert to its last.

What was answered with 200 is kept in SQLite before the answer goes out: `kill -9` costs nothing of it, and a report
that was being made is begun anew. A recorder that is busy with somebody else's look is asked again for a minute. After
`keep_days` an incident that is over, or closed, goes, with its files.

![The list of incidents](img/desk-list.png)

Both pictures are drawn by `python -m tests.support.desk_incident docs/img`. `python -m tests.bench desk` measures how
many webhooks a second it takes, and how long it is from a page to its report.

## Who may

It listens on loopback and answers to this machine's own names only, and `host_names`. Opened to others it doesn't start
without passwords by `web_config` ([settings.md](settings.md#the-web-config)), which then stand before all pages;
client certificates that have to be shown do as well, and so does `open_pages`, where something else says who comes that
far. The webhook goes by `webhook_token_file` where there is one, and has to have it where there are no passwords. What
changes something, a webhook too, isn't taken from a page of another site. Passwords, certificates and a token that
change are taken up while it runs, the token at once; a file that is empty or gone leaves the token before it, and the
log says so.

A request that isn't whole within 30 s ends its connection, and so does a connection on which none was begun. From 800
connections on a new one takes the place of the one that has waited for a request for longest: who asks for nothing, or
for half of something, keeps no alert out.

It asks nobody but the sidecars, engines, Prometheus and Grafana in its settings, whatever an alert says; it follows no
redirect. What labels hold is text on its pages and never part of a path. A body that isn't what Alertmanager sends,
or is larger than 8 MB, is refused with a line that says why and doesn't repeat it.

## Settings

Flags (`--listen`, `--data`, `--prometheus`, `--config`) go before the environment, that before the file. `sidecar` and
`grafana` take all keys of a connection that an engine has: `basic_auth`, `bearer_token_file`, `tls`, `headers`
([settings.md](settings.md)).

| key | variable | |
|---|---|---|
"""


def reference() -> str:
    """The whole page, Markdown."""
    variables = {
        ".".join(map(str, key)): name for name, key, _ in environment_names(DeskSettings, "THRASHOLD_DESK_")
    }
    return _HEAD + "".join(
        f"| `{path}` | {f'`{variables[path]}`' if path in variables else ''} | {meaning} |\n"
        for path, meaning in (*_rows(DeskSettings, ""), *_rows(WorkerSettings, "workers[]."))
    )


def _rows(cls: type, before: str) -> Iterator[tuple[str, str]]:
    kind = inspect.type_info(cls)
    if not isinstance(kind, inspect.DataclassType):
        raise TypeError(f"{cls} is not a dataclass")
    for field in kind.fields:
        schema = (field.type.extra_json_schema or {}) if isinstance(field.type, inspect.Metadata) else {}
        yield before + field.name, schema["description"].replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
