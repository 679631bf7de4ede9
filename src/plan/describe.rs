//! The description of a query in the engine's plans.

use std::fmt;

use super::query::Query;

impl fmt::Display for Query {
    /// One line: the table, the columns, what is read, and what the engine left to the source.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |name: &str, items: Vec<String>| {
            if items.is_empty() { String::new() } else { format!(", {name}: [{}]", items.join(", ")) }
        };
        let columns = match &self.aggregates {
            Some(aggregates) => aggregates.iter().map(ToString::to_string).collect::<Vec<_>>(),
            None => self.columns.iter().map(|column| column.name.to_owned()).collect(),
        };
        let mut texts = self.options.to_texts();
        let paths = texts.remove("paths").unwrap_or_default();
        let table = self.options.table.name();
        texts.remove("table");
        texts.remove("columns");
        let options = texts.iter().map(|(name, text)| format!("{name}={text}")).collect();
        let filters = self.filters.iter().map(ToString::to_string).collect();
        let limit = self.limit.map(|limit| format!(", limit of a task: {limit}")).unwrap_or_default();
        write!(formatter, "cordwood {table} [{}] from {paths}", columns.join(", "))?;
        write!(formatter, "{}{}{limit}", list("options", options), list("filters", filters))
    }
}
