"""YAML into documents that know where their values stand."""

from __future__ import annotations

from typing import Any

import yaml

from alerts.lint.reading.document import Listing, Node, Scalar, Style, Table
from alerts.lint.reading.source import Source, UnreadableError

_STYLES = {"'": Style.SINGLE, '"': Style.DOUBLE, "|": Style.BLOCK, ">": Style.BLOCK}
_MERGE = "tag:yaml.org,2002:merge"
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HELM = "{{"


def read_yaml(source: Source) -> tuple[Node, ...]:
    """The documents of a file. Raises UnreadableError: no YAML, a value that holds itself."""
    loader = _LOADER(source.text)
    documents = []
    try:
        while loader.check_node():
            documents.append(_Reading(loader).node(loader.get_node()))
    except yaml.YAMLError as error:
        raise _unreadable(source, error) from error
    except RecursionError as error:
        raise UnreadableError(source.place(0), "is nested too deeply, or holds itself by an alias") from error
    finally:
        loader.dispose()
    return tuple(documents)


class _Reading:
    """One document; what an alias repeats is read once."""

    def __init__(self, loader: Any) -> None:  # noqa: ANN401 -- of one of two classes
        self._loader = loader
        self._read: dict[int, Node] = {}

    def node(self, node: yaml.Node) -> Node:
        """A value and all that it holds."""
        found = self._read.get(id(node))
        if found is None:
            found = self._read[id(node)] = self._new(node)
        return found

    def _new(self, node: yaml.Node) -> Node:
        at, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, yaml.SequenceNode):
            return Listing(tuple(self.node(item) for item in node.value), at)
        if isinstance(node, yaml.MappingNode):
            return self._table(node, at, end)
        if isinstance(node, yaml.ScalarNode):
            return Scalar(self._value(node), at, end, _STYLES.get(node.style or "", Style.PLAIN))
        raise TypeError(f"PyYAML gives a {type(node).__name__}, which isn't known here")

    def _table(self, node: yaml.MappingNode, at: int, end: int) -> Table:
        entries: dict[str, Node] = {}
        keys_at: dict[str, int] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                several = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for each in reversed(several):
                    merged = self.node(each)
                    if isinstance(merged, Table):
                        entries = {**merged.entries, **entries}
                        keys_at = {**merged.keys_at, **keys_at}
                continue
            name = str(key.value)
            entries[name], keys_at[name] = self.node(value), key.start_mark.index
        return Table(entries, keys_at, at, end)

    def _value(self, node: yaml.ScalarNode) -> object:
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError):
            return (
                node.value
            )  # a tag of one's own, a date that can't be, no text for its tag: the text is there


def _unreadable(source: Source, error: yaml.YAMLError) -> UnreadableError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    position = mark.index if mark is not None else getattr(error, "position", 0)
    place = source.place(min(position, len(source.text)))
    said = getattr(error, "problem", None) or getattr(error, "reason", None) or "can't be parsed"
    hint = ""
    if _HELM in source.line(place.line) or _HELM in source.line(place.line - 1):
        hint = "; a template of Helm has to be rendered first (`helm template`)"
    return UnreadableError(place, f"is no YAML: {said}{hint}")
