"""Reads a YAML settings file into plain values, and remembers on which line each of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

KeyPath = tuple[str | int, ...]
"""How to get to a value: names of keys and places in lists, from the top."""

_MOST_VALUES = 100_000
_NULL_TAG = "tag:yaml.org,2002:null"
_MERGE_TAG = "tag:yaml.org,2002:merge"


class SettingsError(Exception):
    """A setting that can't be used. The text is one line: where, which key, what is wrong."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file holds: ``values`` as YAML says it, ``lines`` the line (from 1) of each key path."""

    path: Path
    values: dict[str, Any]
    lines: dict[KeyPath, int]


def read_settings_file(path: Path) -> SettingsFile:
    """Read ``path``. Raises SettingsError, with the line, where it is not a readable YAML mapping."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        loader = yaml.SafeLoader(body)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        raise SettingsError(f"{path}: not YAML text: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = error.problem or error.context or "unreadable"
        raise SettingsError(f"{place}: not valid YAML: {problem}") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: nested too deeply") from error
    if node is None or node.tag == _NULL_TAG:  # nothing at all, or no more than a "---"
        return SettingsFile(path, {}, {})
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(f"{path}:{node.start_mark.line + 1}: expected keys and values at the top")
    building = _Building(path, loader)
    values = building.value_of(node, ())
    return SettingsFile(path, values, building.lines)


@dataclass(slots=True)
class _Building:
    """One pass over the nodes of a file."""

    path: Path
    loader: yaml.SafeLoader
    lines: dict[KeyPath, int] = field(default_factory=dict)
    flattened: set[int] = field(default_factory=set)
    open_nodes: set[int] = field(default_factory=set)

    def value_of(self, node: yaml.Node, key: KeyPath) -> Any:  # noqa: ANN401 - YAML holds anything
        """Give the plain value of ``node``, and note its line under ``key``."""
        self.lines.setdefault(key, node.start_mark.line + 1)
        if len(self.lines) > _MOST_VALUES:
            raise self._error(node, f"more than {_MOST_VALUES} values")
        if id(node) in self.open_nodes:
            raise self._error(node, "an alias that contains itself")
        self.open_nodes.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, key)
            if isinstance(node, yaml.SequenceNode):
                return [self.value_of(item, (*key, place)) for place, item in enumerate(node.value)]
            return self._scalar(node)
        finally:
            self.open_nodes.remove(id(node))

    def _scalar(self, node: yaml.Node) -> Any:  # noqa: ANN401 - YAML holds anything
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            problem = getattr(error, "problem", None) or str(error)
            raise self._error(node, f"not a value: {problem}") from error
        except (LookupError, AttributeError) as error:  # PyYAML trips over a text that doesn't fit its tag
            raise self._error(
                node, f"not a value: {node.value!r} is no {node.tag.rpartition(':')[2]}"
            ) from error

    def _mapping(self, node: yaml.MappingNode, key: KeyPath) -> dict[str, Any]:
        if id(node) not in self.flattened:
            self._refuse_doubled_keys(node)
            try:
                self.loader.flatten_mapping(node)
            except yaml.MarkedYAMLError as error:
                raise self._error(node, f"not valid YAML: {error.problem}") from error
            self.flattened.add(id(node))
        values: dict[str, Any] = {}
        for name_node, value_node in node.value:
            name = str(name_node.value)
            # Later pairs win: a mapping's own keys follow those merged into it by "<<".
            self.lines[(*key, name)] = name_node.start_mark.line + 1
            values[name] = self.value_of(value_node, (*key, name))
        return values

    def _refuse_doubled_keys(self, node: yaml.MappingNode) -> None:
        first_lines: dict[str, int] = {}
        for name_node, _ in node.value:
            if name_node.tag == _MERGE_TAG:
                continue
            if not isinstance(name_node, yaml.ScalarNode):
                raise self._error(name_node, "a key must be a name")
            line = name_node.start_mark.line + 1
            if name_node.value in first_lines:
                first = first_lines[name_node.value]
                raise self._error(name_node, f"{name_node.value}: given twice, first on line {first}")
            first_lines[name_node.value] = line

    def _error(self, node: yaml.Node, problem: str) -> SettingsError:
        return SettingsError(f"{self.path}:{node.start_mark.line + 1}: {problem}")
