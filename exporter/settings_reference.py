"""Writes ``docs/settings.md`` from the settings: ``python -m exporter.settings_reference docs/settings.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import inspect

from exporter.command import CONFIG_VARIABLE, exporter
from exporter.settings_schema import environment_names
from exporter.sidecar_settings import SidecarSettings

EXAMPLE = """\
# thrashold exporter --config thrashold.yaml
listen: 127.0.0.1:9807
interval_seconds: 1
web_config: web.yml
recorder: {path: flight.db, keep_hours: 48, max_bytes: 268435456}
gpus:
  nvml: auto
  dcgm: http://127.0.0.1:9400        # may hold url and all that an engine's connection may
  processes: false
  pcie_window: false
gateways:
  - http://gateway-1:9901            # Envoy's admin port; its URL is all that one needs before all engines
  - url: http://gateway-2:4000/metrics/
    name: gateway-2
    kind: litellm
    engines: [worker-7, worker-8:8443]
  - url: http://gateway-3:9901/stats/prometheus
    cluster: engines
    listener: ingress
    engines: []
engines:
  - http://worker-1:8000             # its URL is all that an engine needs
  - url: http://worker-7:8000
    name: worker-7
    model_config: llama/config.json  # KV bytes a token, from the model itself ...
    kv_cache_dtype: fp8
    tensor_parallel: 8
    gpus: ["0", "1", "2", "3", "4", "5", "6", "7"]
    pipeline_parallel: 1
    kv_events:                       # or the endpoint alone: kv_events: tcp://worker-7:5557
      endpoint: tcp://worker-7:5557
      replay_endpoint: tcp://worker-7:5567
      topic: kv
      ranks: 8
    probe: /run/thrashold/worker-7.sock
    block_group_tokens: [16, 32]
    long_prompt_tokens: 65536
    slo: {tpot_seconds: 0.2, ttft_seconds: 2}
  - url: https://worker-8:8443/metrics
    deadline_seconds: 10
    max_body_bytes: 33554432
    bearer_token_file: /run/secrets/engine-token
    headers: {X-Tenant: fleet}
    tls:
      ca_file: /etc/ssl/fleet.pem
      cert_file: /run/secrets/client.pem
      key_file: /run/secrets/client.key
      server_name: worker-8.fleet.internal
      insecure_skip_verify: false
    kv_bytes_per_token: 327680       # ... or told
  - url: https://worker-9:8443
    basic_auth: {username: prometheus, password_file: /run/secrets/engine-password}
"""
"""Every key but those that hold a secret themselves; a test loads it."""

WEB_EXAMPLE = """\
# web.yml
tls_server_config: {cert_file: server.pem, key_file: server.key}
basic_auth_users:
  prometheus: $2b$10$T6tbvL1YEwI0xEQRzGbC3O1O8m4YxvEzH4X9r2pQn6u7sV5yWc1dK  # yours: htpasswd -nBC 10 prometheus
auth_excluded_paths: [/-/healthy, /-/ready]
"""

_HEAD = """\
# Settings

Written by `make docs` from the settings as they are declared; a test fails when it is stale.

An engine's URL is all that is needed: `thrashold exporter --engine http://localhost:8000`. All that can be set,
in a file:

```yaml
{example}```

## Where a setting comes from

- A **flag** goes before an **environment variable**, that before the **file**, that before the **default**.
  The file is named by `--config FILE` or `{config_variable}`. An empty variable counts as not set.
- Keys within keys are merged one by one, **lists are replaced as a whole**: `--engine URL` (repeatable) or
  `THRASHOLD_ENGINES` puts its engines in place of the file's, with all that the file says of those.
- The keys of an engine can only be set in the file; flags and variables give its URL and, as NAME=URL, its name.
- A relative path in a file counts from the folder of that file, elsewhere from where the command runs.
- What can't be used is refused at the start with exit code 2 and one line: the file and its line, the variable or
  the flag, then the key. So are files that a setting names and that can't be read. Unknown keys are refused; an
  unknown variable that is close to one of ours is warned of, others (Kubernetes sets some for a service called
  thrashold) are left alone.
- Settings are read once, at the start. Files of tokens and passwords are read again when they have changed, the web
  config and its certificates within 10 s of it, the TLS files of an engine when TLS fails and they have changed.

## Secrets

They belong in files of their own, readable for the sidecar's user alone: `bearer_token_file`,
`basic_auth.password_file`, `tls.key_file`. Around a token or a password white space is taken off, and a file that
is replaced, as mounted secrets are, is taken up at the next read. `bearer_token`, `basic_auth.password` and
`headers` are for settings files that are themselves kept secret. Flags and variables take no secrets, as other
processes may see them, and a URL with a user or a password in it is refused. No secret is logged, shown or sent
anywhere but to the engine it is for.

## The web config

TLS and basic auth for the sidecar's own pages, in the
[format](https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md) of Prometheus's
exporters:

```yaml
{web_example}```

- `tls_server_config`: `cert_file` and `key_file`; for client certificates `client_ca_file` with `client_auth_type`
  (`RequireAndVerifyClientCert`, `VerifyClientCertIfGiven`); `min_version` and `max_version` (`TLS12`, `TLS13`).
- `basic_auth_users`: the bcrypt hash of each user's password. All pages ask for it but `auth_excluded_paths`, whole
  paths such as those of probes.
- `http_server_config.headers`: further headers of each answer.

Other keys of the format are refused by name.

## Keys

`engines[]` stands for each engine of the list. In the file, keys within keys are indented, as in the example.
"""


@dataclass(frozen=True, slots=True)
class Level:
    """Keys that stand together: those of the file itself, of an engine, of its ``tls``, ..."""

    path: str
    kind: inspect.DataclassType

    @property
    def title(self) -> str:
        """Its heading, and with it the anchor that links lead to."""
        return f"`{self.path}`" if self.path else "The file itself"


def levels(kind: inspect.DataclassType, path: str = "") -> Iterator[Level]:
    """Yield the level of ``kind``, then those below it."""
    yield Level(path, kind)
    for field in kind.fields:
        inner, is_list = _inner(field.type)
        if isinstance(inner, inspect.DataclassType):
            name = field.name + ("[]" if is_list else "")
            yield from levels(inner, f"{path}.{name}" if path else name)


def all_levels() -> list[Level]:
    """Every level of the settings file, from the top."""
    top = inspect.type_info(SidecarSettings)
    if not isinstance(top, inspect.DataclassType):
        raise TypeError(f"{SidecarSettings} is not a dataclass")
    return list(levels(top))


def reference() -> str:
    """The whole page, Markdown."""
    lines = [_HEAD.format(example=EXAMPLE, web_example=WEB_EXAMPLE, config_variable=CONFIG_VARIABLE)]
    for level in all_levels():
        lines += [
            f"### {level.title}",
            "",
            (level.kind.cls.__doc__ or "").partition("\n")[0].replace("``", "`"),
            "",
        ]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [_row(level, field) for field in level.kind.fields]
        lines.append("")
    return "\n".join(lines)


def _row(level: Level, field: inspect.Field) -> str:
    path = f"{level.path}.{field.name}" if level.path else field.name
    meaning = field.type.extra_json_schema or {} if isinstance(field.type, inspect.Metadata) else {}
    others = _other_ways(path)
    cells = (f"`{path}`", _in_words(field.type, path), _default(field), meaning["description"] + others)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _other_ways(path: str) -> str:
    """How a key can be set elsewhere than in the file, if it can."""
    flags = [option.opts[0] for option in exporter.params if option.name == path.replace(".", "_")]
    variables = [
        name for name, key, _ in environment_names(SidecarSettings) if ".".join(map(str, key)) == path
    ]
    ways = ", ".join(f"`{way}`" for way in (*flags, *variables))
    return f" Also: {ways}." if ways else ""


def _default(field: inspect.Field) -> str:
    if field.required:
        return "needed"
    if isinstance(_inner(field.type)[0], inspect.DataclassType) and field.default:
        return "those below"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`" if value else "not set"


def _inner(kind: inspect.Type) -> tuple[inspect.Type, bool]:
    """What ``kind`` is at heart, or what it is a list of."""
    if isinstance(kind, inspect.Metadata):
        return _inner(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _inner(next(each for each in kind.types if not isinstance(each, inspect.NoneType)))
    if isinstance(kind, inspect.VarTupleType):
        return _inner(kind.item_type)[0], True
    return kind, False


def _in_words(kind: inspect.Type, path: str) -> str:
    """A type as those who write YAML call it, with its limits. ``path`` is the key that is of it."""
    inner, is_list = _inner(kind)
    if is_list:
        return f"a list, each {_one_in_words(inner, f'{path}[]')}"
    return _one_in_words(inner, path)


def _one_in_words(kind: inspect.Type, path: str) -> str:
    if isinstance(kind, inspect.DataclassType):
        anchor = "".join(letter for letter in path if letter.isalnum() or letter == "_")
        shorthand = getattr(kind.cls, "shorthand", "")
        text = f" or its {'URL' if shorthand == 'url' else shorthand} alone" if shorthand else ""
        text += ", or `NAME=URL`" if hasattr(kind.cls, "shorthand_name") else ""
        return f"[keys](#{anchor}){text}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        return name + _limits(kind)
    for found, words in (
        (inspect.BoolType, "true or false"),
        (inspect.StrType, "text"),
        (inspect.DictType, "names and texts"),
    ):
        if isinstance(kind, found):
            return words
    if isinstance(kind, inspect.LiteralType):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.CustomType) and kind.cls is Path:
        return "a file"
    raise TypeError(f"{path}: no words for {kind}")


def _limits(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    words = [(" above", kind.gt), (" at least", kind.ge), (" at most", kind.le)]
    return ",".join(f"{word} {limit:.15g}" for word, limit in words if limit is not None)


def main() -> None:
    """Write the page to the path given. Exits 2 without one."""
    if len(sys.argv) != 2:  # noqa: PLR2004 -- the command and its one argument
        sys.stderr.write("usage: python -m exporter.settings_reference PATH\n")
        raise SystemExit(2)
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
