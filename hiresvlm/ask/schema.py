"""`--schema`: a JSON Schema -> one object per document, each of its fields with evidence of its own.

Every scalar property is a question (its title, else its name in words, with the object around it as
owner). An array of objects is a table whose columns are the properties. What is not found is null; the
rest is validated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any

from hiresvlm.ask import fields, values
from hiresvlm.ask.fields import Field, Kind
from hiresvlm.ask.grid import Grid, PageText, Unit, build
from hiresvlm.ask.question import Asked, understand
from hiresvlm.ask.reader import Reader, Reading, answer
from hiresvlm.ask.tables import column_distance
from hiresvlm.ask.wording import similarity, solid
from hiresvlm.datatypes import Evidence

MAX_DEPTH = 12
"""Objects within objects; also ends references that lead to themselves."""
MAX_FIELDS = 500
MAX_ITEMS = 1000
"""Rows of a table that become items."""
HEADING = 0.8
ROW_CELLS = 0.5
"""Share of the columns that a row needs to be an item."""

_YES = frozenset(("yes", "true", "y", "x", "√", "✓", "☑", "是", "有", "已", "对"))
_NO = frozenset(("no", "false", "n", "none", "☐", "否", "无", "未", "没有"))


class SchemaError(ValueError):
    """The schema cannot be used; the message says why, in terms of the user's file."""


@dataclass(slots=True)
class Filled:
    """The object, what was found for each path, and where it does not satisfy the schema."""

    value: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Reading] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    pages: set[int] = field(default_factory=set)


class Schema:
    """A JSON Schema (2020-12) of an object. Raises `SchemaError`."""

    def __init__(self, text: str, table: tuple[Field, ...] = fields.FIELDS) -> None:
        self._table = table
        self._whole = parse(text)
        self._root = self._resolve(self._whole)
        if not self._properties(self._root, 0):
            raise SchemaError("it has no properties, so there is nothing to ask")
        # References can make exponentially many fields of a few lines, so counting ends at the limit.
        if sum(1 for _ in islice(self._leaves(self._root, 0), MAX_FIELDS + 1)) > MAX_FIELDS:
            raise SchemaError(f"it has more than {MAX_FIELDS} fields")
        self._validator = _validator(self._whole)

    def fill(self, pages: Sequence[PageText], reader: Reader, top_pages: int) -> Filled:
        """Ask for every field. Never raises for what a document says."""
        filled = Filled()
        self._object(self._root, "", (), filled.value, _Work(pages, reader, top_pages, filled), 0)
        for error in self._validator.iter_errors(_without_nulls(filled.value)):
            where = ".".join(str(part) for part in error.absolute_path) or "the object"
            missing = f" ({_missing(error)})" if error.validator == "required" else ""
            filled.problems.append(f"{where} does not satisfy {error.validator!r} of the schema{missing}")
        return filled

    # ------------------------------------------------------------------------------------ private

    def _object(
        self,
        schema: Mapping[str, Any],
        path: str,
        owners: tuple[str, ...],
        into: dict[str, Any],
        work: _Work,
        depth: int,
    ) -> None:
        for name, raw in self._properties(schema, depth).items():
            part = self._resolve(raw)
            here = f"{path}.{name}" if path else name
            if _is(part, "object") and "properties" in part:
                inner: dict[str, Any] = {}
                self._object(part, here, (*owners, _words(name, part)), inner, work, depth + 1)
                into[name] = inner if any(v is not None for v in inner.values()) else None
            elif _is(part, "array"):
                into[name] = self._array(part, here, name, owners, work, depth)
            else:
                into[name] = self._scalar(part, here, name, owners, work)

    def _scalar(
        self, part: Mapping[str, Any], path: str, name: str, owners: tuple[str, ...], work: _Work
    ) -> Any:
        reading = work.ask(self._question(name, part, owners))
        if reading.answer is None and owners and fields.best(owners[-1], self._table)[1] < 0.9:
            # An owner such as "header" only groups fields; one such as "seller" says whose they are.
            reading = work.ask(self._question(name, part, ()))
        value, reading = _cast(reading, part)
        if value is None and reading.answer is not None:
            work.filled.problems.append(f"{path}: what was found is not of the type or choice asked for")
            reading = replace(reading, answer=None, value=None, currency=None, confidence=None)
        work.filled.fields[path] = reading
        return value

    def _question(self, name: str, part: Mapping[str, Any], owners: tuple[str, ...]) -> Asked:
        words = _words(name, part)
        asked = understand(" ".join((*owners[-1:], words)), self._table)
        if asked.of and not owners:  # "invoice_total" is one name, not a total that an invoice owns
            asked = replace(asked, of="", targets=(words, *asked.targets))
        description = part.get("description")
        if asked.field is None and isinstance(description, str):
            known = understand(description, self._table)
            if known.field is not None:
                asked = replace(
                    asked,
                    field=known.field,
                    kind=known.kind,
                    targets=(*asked.targets, *known.field.wordings),
                )
        if asked.field is None:
            asked = replace(asked, kind=_kind(part, asked.kind))
        return replace(asked, everything=False)

    def _array(
        self,
        part: Mapping[str, Any],
        path: str,
        name: str,
        owners: tuple[str, ...],
        work: _Work,
        depth: int,
    ) -> list[Any] | None:
        items = self._resolve(part.get("items") if isinstance(part.get("items"), dict) else {})
        if _is(items, "object") and "properties" in items:
            return self._table_items(items, path, work, depth + 1)
        reading = work.ask(self._question(name, part, owners))
        found = [] if reading.answer is None else re.split(r"\s*[,，;；、/]\s*", reading.answer)
        cast = [_cast(replace(reading, answer=text, value=text), items)[0] for text in found if text]
        work.filled.fields[path] = reading
        return [value for value in cast if value is not None] or None

    def _table_items(self, items: Mapping[str, Any], path: str, work: _Work, depth: int) -> list[Any] | None:
        parts = {n: self._resolve(p) for n, p in self._properties(items, depth).items()}
        parts = {n: p for n, p in parts.items() if not _is(p, "array") and "properties" not in p}
        columns = {n: self._question(n, p, ()) for n, p in parts.items()}
        rows: list[dict[str, Any]] = []
        for page in work.pages:
            grid = build(page)
            headings = _headings(grid, columns)
            if headings:
                work.filled.pages.add(page.page)
            for cells in _rows(grid, headings):
                if len(rows) >= MAX_ITEMS:
                    break
                row: dict[str, Any] = {}
                for name, part in parts.items():
                    reading = _cell(grid, cells.get(name), columns[name], headings.get(name))
                    row[name], reading = _cast(reading, part)
                    work.filled.fields[f"{path}[{len(rows)}].{name}"] = reading
                rows.append(row)
        return rows or None

    def _properties(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise SchemaError(f"objects are nested deeper than {MAX_DEPTH} (a reference to itself?)")
        found = schema.get("properties")
        return dict(found) if isinstance(found, dict) else {}

    def _leaves(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        for name, raw in self._properties(schema, depth).items():
            part = self._resolve(raw)
            if _is(part, "array") and isinstance(part.get("items"), dict):
                part = self._resolve(part["items"])
            if self._properties(part, depth + 1):
                yield from self._leaves(part, depth + 1)
            else:
                yield name

    def _resolve(self, part: Any) -> Mapping[str, Any]:
        """A part of the schema with local references followed and `allOf`/nullable choices flattened."""
        seen = 0
        while isinstance(part, dict):
            choices = part.get("anyOf") or part.get("oneOf")
            if isinstance(part.get("$ref"), str):
                rest = {k: v for k, v in part.items() if k != "$ref"}
                part = {**self._pointer(part["$ref"]), **rest}
            elif isinstance(choices, list):
                real = [c for c in choices if isinstance(c, dict) and c.get("type") != "null"]
                rest = {k: v for k, v in part.items() if k not in ("anyOf", "oneOf")}
                part = {**(real[0] if real else {}), **rest}
            else:
                return part
            seen += 1
            if seen > MAX_DEPTH:
                raise SchemaError("a reference leads to itself")
        return {}

    def _pointer(self, reference: str) -> dict[str, Any]:
        if not reference.startswith("#"):
            raise SchemaError(f"the reference {reference!r} leads out of the file; only #/... can be used")
        here: Any = self._whole
        for token in reference[1:].strip("/").split("/") if reference != "#" else ():
            name = token.replace("~1", "/").replace("~0", "~")
            here = here.get(name) if isinstance(here, dict) else None
        if not isinstance(here, dict):
            raise SchemaError(f"the reference {reference!r} leads nowhere")
        return here


@dataclass(slots=True)
class _Work:
    """The pages of a document while its object is filled."""

    pages: Sequence[PageText]
    reader: Reader
    top_pages: int
    filled: Filled

    def ask(self, asked: Asked) -> Reading:
        reading, read = answer(asked, self.pages, self.reader, self.top_pages)
        self.filled.pages.update(read)
        return reading


def parse(text: str) -> dict[str, Any]:
    """The schema as an object. Raises `SchemaError`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise SchemaError(f"it is not JSON{where}") from None
    if not isinstance(value, dict):
        raise SchemaError("it is not a JSON object")
    if "properties" not in value and "$ref" not in value:
        raise SchemaError("it describes no object with properties")
    return value


def _validator(schema: dict[str, Any]) -> Any:
    """Of the `jsonschema` package, with a registry that fetches nothing."""
    import jsonschema
    import referencing

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the top"
        raise SchemaError(f"it is no JSON Schema: at {where}, {error.message[:200]}") from None
    except RecursionError:
        raise SchemaError("it is nested too deeply") from None
    return jsonschema.Draft202012Validator(schema, registry=referencing.Registry())


def _missing(error: Any) -> str:
    names = [n for n in error.validator_value if n not in error.instance]
    return "missing: " + ", ".join(map(str, names))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value


def _is(part: Mapping[str, Any], kind: str) -> bool:
    declared = part.get("type")
    if declared is None:
        return (kind == "object" and "properties" in part) or (kind == "array" and "items" in part)
    return kind in declared if isinstance(declared, list) else declared == kind


def _words(name: str, part: Mapping[str, Any]) -> str:
    """`title`, else the name in words: invoiceNumber and invoice_number are both "invoice number"."""
    title = part.get("title")
    if isinstance(title, str) and solid(title):
        return title
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").strip() or name


def _kind(part: Mapping[str, Any], otherwise: Kind) -> Kind:
    formats = {"date": Kind.DATE, "date-time": Kind.DATE, "time": Kind.TIME, "email": Kind.EMAIL}
    if part.get("format") in formats:
        return formats[part["format"]]
    if _is(part, "integer"):
        return Kind.COUNT
    return Kind.AMOUNT if _is(part, "number") else otherwise


def _cast(reading: Reading, part: Mapping[str, Any]) -> tuple[Any, Reading]:
    """The value in the type that the schema wants; None where it cannot be had."""
    if reading.answer is None:
        return None, reading
    printed, normal = reading.answer, reading.value or reading.answer
    choices = [part["const"]] if "const" in part else part.get("enum")
    if isinstance(choices, list):
        scored = [(similarity(str(choice), printed), choice) for choice in choices if choice is not None]
        score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return (best if score >= 0.8 else None), reading
    if _is(part, "integer") or _is(part, "number"):
        number = values.find(Kind.AMOUNT, printed) or values.find(Kind.COUNT, printed)
        if not number:
            number = values.find(Kind.PERCENT, printed)
        if not number:
            return None, reading
        decimal = Decimal(number[0].normal)
        if decimal == int(decimal) and (
            _is(part, "integer") or (abs(decimal) < 2**53 and "." not in printed)
        ):
            return int(decimal), reading
        return (None if _is(part, "integer") else float(decimal)), reading
    if _is(part, "boolean"):
        word = printed.strip().casefold()
        return (True if word in _YES else False if word in _NO else None), reading
    wants_date = part.get("format") == "date"
    if wants_date and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", normal):
        found = values.find(Kind.DATE, printed)
        return (found[0].normal if found else None), reading
    if wants_date:
        return normal, reading
    return printed, reading


# ------------------------------------------------------------------------------------------ tables


def _headings(grid: Grid, columns: Mapping[str, Asked]) -> dict[str, Unit]:
    """The row that heads the most columns: property -> its heading."""
    best: dict[str, Unit] = {}
    for row in grid.rows:
        found: dict[str, Unit] = {}
        for name, asked in columns.items():
            scored = [
                (
                    max(
                        similarity(t, u.text) * (1.0 if n == 0 else 0.97) for n, t in enumerate(asked.targets)
                    ),
                    u,
                )
                for u in row
                if u.box is not None and not u.marked and u not in found.values()
            ]
            score, unit = max(scored, key=lambda pair: pair[0], default=(0.0, None))
            if unit is not None and score >= HEADING:
                found[name] = unit
        if len(found) > len(best) and len(found) >= min(2, len(columns)):
            best = found
    return best


def _rows(grid: Grid, headings: Mapping[str, Unit]) -> Iterator[dict[str, Unit]]:
    """Cells of each row below the headings, until one has too few."""
    if not headings:
        return
    first = next(iter(headings.values()))
    every = [u for u in grid.rows[first.row] if u.box is not None]
    for row in grid.rows[first.row + 1 :]:
        cells: dict[str, Unit] = {}
        for name, heading in headings.items():
            near = [
                (column_distance(u, heading), u)
                for u in row
                if u.box is not None and min(every, key=lambda h: column_distance(u, h)) is heading
            ]
            distance, unit = min(near, key=lambda pair: pair[0], default=(0.0, None))
            if unit is not None and distance <= 3 * heading.em:
                cells[name] = unit
        if len(cells) < ROW_CELLS * len(headings) or any(u.marked for u in row):
            return
        yield cells


def _cell(grid: Grid, unit: Unit | None, asked: Asked, heading: Unit | None) -> Reading:
    if unit is None or heading is None:
        return Reading(None)
    got = values.find(asked.kind, unit.text, grid.month_first)
    value = max(got, key=lambda v: v.fit) if got else None
    evidence = (Evidence(grid.page.page, unit.box, unit.text),)
    if value is None:
        return Reading(None, evidence=evidence)
    return Reading(value.text, value.normal, value.currency, round(0.9 * unit.confidence, 4), evidence)
