//! A query of an engine: options, columns, and what the engine leaves to the source.

use serde_json::Value;

use super::aggregates::Aggregate;
use super::bounds::{Bounds, check_names, check_start, end_of};
use super::context::Context;
use super::cutting::Cutting;
use super::directory::find_partitions;
use super::error::{Code, PlanError, Result};
use super::filter::Filter;
use super::gaps::offsets_in_gaps;
use super::options::{Mode, SourceOptions, Table};
use super::piece::{Piece, Task};
use super::restriction::Restriction;
use super::schema::{ERROR, TableColumn, to_json};
use super::shape::arrow_schema;
use super::warning::Warning;
use crate::arrow::Column;
use crate::types::IsolationLevel;

/// A checked query.
#[derive(Debug, Clone)]
pub struct Query {
    /// The options.
    pub options: SourceOptions,
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) restriction: Restriction,
    /// The maximum number of rows of each task.
    pub(crate) limit: Option<usize>,
    /// Instead of rows.
    pub(crate) aggregates: Option<Vec<Aggregate>>,
    /// Whether it is a micro-batch of a stream.
    pub(crate) is_stream: bool,
}

/// What a query reads and returns, estimated; `None` if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Bytes of the batches, as they are stored.
    pub bytes: Option<u64>,
    /// Rows: of records, the number of offsets.
    pub rows: Option<u64>,
}

impl Query {
    /// A query of all rows, with the columns of a schema (the JSON of Spark's `StructType`); `None`: the
    /// columns of the options.
    ///
    /// # Errors
    /// [`Code::BadOption`] for a schema that does not fit the options.
    pub fn new(options: SourceOptions, schema: Option<&str>) -> Result<Self> {
        let columns = match schema {
            Some(schema) => options.columns_of_schema(schema)?,
            None => options.selected_columns()?,
        };
        let restriction = Restriction::default();
        Ok(Self {
            options,
            columns,
            filters: Vec::new(),
            restriction,
            limit: None,
            aggregates: None,
            is_stream: false,
        })
    }

    /// Reads a query from JSON: `options` (names and texts), `schema`, `columns`, `filters`, `limit`,
    /// `aggregates` and `isStream`; all but the first may be missing or null.
    ///
    /// # Errors
    /// [`Code::BadOption`].
    pub fn from_json(text: &str, warnings: &mut Vec<Warning>) -> Result<Self> {
        let wrong = |found: &str| {
            PlanError::new(Code::BadOption, format!("query: expected a query of this version, found {found}"))
        };
        let query: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let part = |name: &str| query.get(name).filter(|value| !value.is_null());
        let texts = part("options").and_then(Value::as_object).ok_or_else(|| wrong("no options"))?;
        let mut options = Vec::new();
        for (name, text) in texts {
            options.push((name.as_str(), text.as_str().ok_or_else(|| wrong("an option that is no text"))?));
        }
        let options = SourceOptions::from_texts(options, warnings)?;
        let schema = part("schema").map(Value::to_string);
        let mut found = Self::new(options, schema.as_deref())?;
        if let Some(names) = part("columns") {
            let names = names.as_array().ok_or_else(|| wrong("columns that are no list"))?;
            let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            found.columns =
                found.options.columns_named(names.ok_or_else(|| wrong("a column that is no text"))?)?;
        }
        found.filters = part("filters").map(Filter::read_all).transpose()?.unwrap_or_default();
        found.restriction = Filter::restriction(&found.filters, &found.options);
        let limit =
            part("limit").map(|limit| limit.as_u64().ok_or_else(|| wrong("a limit that is no number")));
        found.limit = limit.transpose()?.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        found.aggregates = part("aggregates").map(Aggregate::read_all).transpose()?;
        found.is_stream = part("isStream").and_then(Value::as_bool).unwrap_or(false);
        Ok(found)
    }

    /// For each filter, whether the rows are those for which it holds, so that the engine need not evaluate
    /// it again.
    pub fn exact_filters(&self) -> Vec<bool> {
        Filter::are_exact(&self.filters, &self.options)
    }

    /// Whether tasks compute the aggregates: damaged ranges are rows too with `mode=PERMISSIVE`, and only
    /// records are aggregated.
    pub fn can_aggregate(&self) -> bool {
        let is_known = |aggregates: &Vec<Aggregate>| !aggregates.contains(&Aggregate::Other);
        self.aggregates.as_ref().is_some_and(is_known)
            && self.options.table == Table::Records
            && self.options.mode != Mode::Permissive
    }

    /// The same query of records with their number, without the rows for damage.
    #[must_use]
    pub fn counting(&self) -> Self {
        Self { aggregates: Some(vec![Aggregate::Count]), ..self.clone() }
    }

    /// Whether it is a micro-batch of a stream.
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// The same query as a micro-batch of a stream.
    #[must_use]
    pub fn of_stream(self) -> Self {
        Self { is_stream: true, ..self }
    }

    /// The schema of its rows as the JSON of Spark's `StructType`.
    pub fn schema_json(&self) -> String {
        to_json(&self.columns).to_string()
    }

    /// The schema of its rows in Arrow.
    pub fn arrow_schema(&self) -> arrow_schema::SchemaRef {
        arrow_schema(&self.columns)
    }

    /// The columns to read from the core: at least one, so that a batch has a number of rows.
    pub(crate) fn core_columns(&self) -> Vec<Column> {
        if self.options.table != Table::Records {
            return Vec::new();
        }
        let is_read =
            |column: &&TableColumn| !["topic", "partition"].contains(&column.name) && column.name != ERROR;
        let columns: Vec<_> = self
            .columns
            .iter()
            .filter(is_read)
            .filter_map(|column| Column::parse(column.core_name).ok())
            .collect();
        if columns.is_empty() { vec![Column::Offset] } else { columns }
    }
}

impl Context {
    /// Checks the options together with the paths, as when a table is loaded.
    ///
    /// # Errors
    /// As [`Context::plan`], apart from the errors of opening a log.
    pub fn check(&mut self, options: &SourceOptions) -> Result<()> {
        // warnings about skipped directories come from the plan of the query
        let chosen = find_partitions(options, &mut Vec::new())?;
        let has_end = options.ends().next().is_some();
        // a stream may find partitions that were created after its first offsets were recorded
        check_names(options, &chosen, has_end)?;
        if has_end { check_start(options) } else { Ok(()) }
    }

    /// Plans a batch query from the current logs: the ranges of the partitions, in order, and the tasks.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::BadOption`], [`Code::OffsetOutOfRange`], [`Code::TimeNotFound`],
    /// [`Code::SegmentGone`], and the errors of opening a log.
    pub fn plan(&mut self, query: &Query) -> Result<(Vec<Bounds>, Vec<Task>)> {
        let Query { options, restriction, .. } = query;
        let ignored = options.only_for_streams();
        if !ignored.is_empty() {
            let text = format!("ignored, because this is not a stream: {}", ignored.join(", "));
            self.warnings.push(Warning::new(text));
        }
        check_start(options)?;
        let chosen = find_partitions(options, &mut self.warnings)?;
        check_names(options, &chosen, true)?;
        let (mut ranges, mut tasks) = (Vec::new(), Cutting::new(options, restriction));
        for directory in chosen.iter().filter(|directory| restriction.includes(directory)) {
            let bounds = self.bounds_of(directory, options)?;
            let bounds = restriction.narrowed(bounds, &self.open(directory, options, false)?)?;
            tasks.add(self, &bounds)?;
            ranges.push(bounds);
        }
        Ok((ranges, tasks.finish(self)?))
    }

    /// Estimates what a query reads and returns, for an optimizer.
    ///
    /// # Errors
    /// As [`Context::plan`].
    pub fn estimate(&mut self, query: &Query) -> Result<Estimate> {
        let (_, tasks) = self.plan(query)?;
        let pieces = || tasks.iter().flat_map(|task| &task.pieces);
        let offsets = |piece: &Piece| piece.split.end_offset.abs_diff(piece.split.start_offset);
        let rows = match query.options.table {
            _ if query.aggregates.is_some() => Some(tasks.len() as u64),
            Table::Records => Some(pieces().map(offsets).fold(0, u64::saturating_add)),
            Table::Segments => Some(pieces().count() as u64),
            Table::Batches => None,
        };
        Ok(Estimate { bytes: Some(tasks.iter().map(Task::size).fold(0, u64::saturating_add)), rows })
    }

    /// The number of offsets of a piece that are in gaps between segments, in the log as it was read last.
    ///
    /// # Errors
    /// Those of reading the log.
    pub fn offset_gap(&mut self, piece: &Piece, options: &SourceOptions) -> Result<u64> {
        let offsets = piece.split.start_offset..piece.split.end_offset;
        if offsets.is_empty() {
            return Ok(0);
        }
        let log = self.open(&piece.directory, options, false)?;
        offsets_in_gaps(&log, offsets).map_err(|error| PlanError::of(error).in_log(&piece.directory))
    }

    /// The ranges of a batch query without tasks. They end where the rows end: with `read_committed` at most
    /// the last stable offset.
    ///
    /// # Errors
    /// As [`Context::plan`].
    pub fn ranges(&mut self, query: &Query) -> Result<Vec<Bounds>> {
        let options = &query.options;
        check_start(options)?;
        let chosen = find_partitions(options, &mut self.warnings)?;
        check_names(options, &chosen, true)?;
        let mut ranges = Vec::new();
        for directory in &chosen {
            let mut bounds = self.bounds_of(directory, options)?;
            if options.isolation_level == IsolationLevel::ReadCommitted {
                // a given offset may be above it
                let log = self.open(directory, options, false)?;
                bounds.end_offset = bounds.end_offset.min(end_of(&log, directory, options)?);
            }
            ranges.push(bounds);
        }
        Ok(ranges)
    }
}
