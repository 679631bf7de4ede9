"""Queries with Spark's schemas."""

import json

from pyspark.sql.types import StructType

from cordwood._core import _Query, _SourceOptions

__all__ = ["query_of", "schema_of"]


def query_of(options: _SourceOptions, schema: StructType | None = None, *, is_stream: bool = False) -> _Query:
    """Return the query of options, with the columns of a schema or by default those of the options.

    *Errors*: `CORDWOOD_BAD_OPTION` for a schema that does not fit the options.
    """
    return _Query(options, None if schema is None else schema.json(), is_stream=is_stream)


def schema_of(query: _Query) -> StructType:
    """Return the schema of the rows of a query."""
    return StructType.fromJson(json.loads(query.schema))
