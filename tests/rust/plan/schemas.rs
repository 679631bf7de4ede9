//! Schemas of users and queries of engines as JSON: what a query writes is read, and other JSON is an error.

use cordwood::plan::{Code, PlanError, Query, SourceOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::fixed_seed;

fn options(texts: &[(&str, &str)]) -> SourceOptions {
    let texts = [&[("path", "data")], texts].concat();
    SourceOptions::from_texts(texts, &mut Vec::new()).unwrap()
}

fn read(texts: &[(&str, &str)], schema: &Value) -> Result<Query, PlanError> {
    let found = Query::new(options(texts), Some(&schema.to_string()));
    if let Err(error) = &found {
        assert_eq!(error.code, Code::BadOption);
    }
    found
}

fn schema_of(texts: &[(&str, &str)]) -> Value {
    serde_json::from_str(&Query::new(options(texts), None).unwrap().schema_json()).unwrap()
}

const TABLES: [&[(&str, &str)]; 5] = [
    &[],
    &[("includeHeaders", "true"), ("mode", "PERMISSIVE")],
    &[("table", "batches")],
    &[("table", "segments"), ("mode", "PERMISSIVE")],
    &[("mode", "PERMISSIVE"), ("columns", "magic,codec,_error")],
];

/// Each part of a JSON value, by a path of names and numbers.
fn parts(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| parts(value, &format!("{path}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| parts(value, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

#[test]
fn the_schema_of_a_query_is_a_schema_for_it() {
    for texts in TABLES {
        let schema = schema_of(texts);
        let query = read(texts, &schema).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&query.schema_json()).unwrap(), schema);
        assert_eq!(query.arrow_schema(), Query::new(options(texts), None).unwrap().arrow_schema());
    }
}

/// Comments of a user, which Spark keeps in the metadata.
#[test]
fn metadata_does_not_matter() {
    for texts in TABLES {
        let text = schema_of(texts)
            .to_string()
            .replace("\"metadata\":{}", r#""metadata":{"comment":"x","type":[1]}"#);
        let schema: Value = serde_json::from_str(&text).unwrap();
        let found = read(texts, &schema).unwrap().schema_json();
        assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), schema_of(texts));
    }
}

#[test]
fn a_schema_with_any_part_replaced_is_an_error_or_has_the_same_types() {
    let others =
        [json!(null), json!(7), json!("x"), json!("long"), json!([]), json!({}), json!(false), json!([{}])];
    for texts in TABLES {
        let schema = schema_of(texts);
        let mut paths = Vec::new();
        parts(&schema, "", &mut paths);
        for path in paths {
            for other in &others {
                let mut changed = schema.clone();
                *changed.pointer_mut(&path).unwrap() = other.clone();
                if let Ok(query) = read(texts, &changed) {
                    let known = Query::new(options(texts), None).unwrap().arrow_schema();
                    for field in query.arrow_schema().fields() {
                        assert_eq!(known.field_with_name(field.name()).unwrap(), field.as_ref(), "{changed}");
                    }
                }
            }
        }
    }
}

#[test]
fn columns_that_are_not_nullable_are_refused() {
    for texts in TABLES {
        for (place, _) in schema_of(texts)["fields"].as_array().unwrap().iter().enumerate() {
            let mut changed = schema_of(texts);
            changed["fields"][place]["nullable"] = false.into();
            assert!(read(texts, &changed).unwrap_err().reason.contains("not null"));
        }
    }
}

#[test]
fn hostile_texts_are_refused() {
    let deep = |opening: &str, closing: &str, depth: usize| {
        format!("{}{}", opening.repeat(depth), closing.repeat(depth))
    };
    let array = r#"{"type":"array","containsNull":true,"elementType":"#;
    let field = |kind: &str| format!(r#"{{"type":"struct","fields":[{{"name":"key","type":{kind}}}]}}"#);
    let mut texts: Vec<String> = [
        "",
        "null",
        "{}",
        "[]",
        "{\"fields\":{}}",
        "{\"fields\":[null]}",
        "{\"fields\":[{}]}",
        "{\"fields\":[{\"name\":7}]}",
    ]
    .map(str::to_owned)
    .into();
    for depth in [30, 110, 130, 100_000] {
        texts.push(deep("[", "]", depth));
        texts.push(deep("{\"fields\":", "}", depth));
        texts.push(field(&deep("[", "]", depth)));
        texts.push(field(&format!("{}\"long\"{}", array.repeat(depth), "}".repeat(depth))));
    }
    texts.push(field(&format!("\"{}\"", "x".repeat(1 << 20))));
    texts.push(format!(
        "{{\"fields\":[{}]}}",
        vec!["{\"name\":\"key\",\"type\":\"binary\"}"; 10_000].join(",")
    ));
    for texts_of_options in TABLES {
        for text in &texts {
            let error = Query::new(options(texts_of_options), Some(text)).unwrap_err();
            assert_eq!(error.code, Code::BadOption, "{text:.100}");
            assert!(!error.to_string().contains('\n'));
        }
    }
}

#[test]
fn a_query_with_parts_of_a_wrong_type_is_refused() {
    let parts = ["options", "schema", "columns", "filters", "limit", "aggregates"];
    let wrong = [
        json!(7.5),
        json!(-1),
        json!("x"),
        json!([7]),
        json!([[]]),
        json!([{}]),
        json!({ "a": 1 }),
        json!(true),
    ];
    for part in parts {
        for wrong in &wrong {
            let mut asked = json!({ "options": { "path": "data" } });
            asked[part] = wrong.clone();
            let error = Query::from_json(&asked.to_string(), &mut Vec::new()).unwrap_err();
            assert_eq!(error.code, Code::BadOption, "{asked}");
        }
        let mut asked = json!({ "options": { "path": "data" } });
        if part != "options" {
            asked[part] = Value::Null;
            Query::from_json(&asked.to_string(), &mut Vec::new()).unwrap();
        }
    }
    for text in ["", "null", "[]", "{}", "{\"options\":{\"path\":7}}", "{\"options\":{}}"] {
        assert_eq!(Query::from_json(text, &mut Vec::new()).unwrap_err().code, Code::BadOption, "{text}");
    }
}

fn query_with(part: &str, value: &Value) -> Result<Query, PlanError> {
    let asked = json!({ "options": { "path": "data" }, part: [value] });
    Query::from_json(&asked.to_string(), &mut Vec::new())
}

#[test]
fn a_filter_with_an_unknown_operator_is_refused() {
    for operator in ["!=", "like", "IN", "isNull", ""] {
        let filter = json!({ "column": "offset", "op": operator, "value": 1 });
        assert_eq!(query_with("filters", &filter).unwrap_err().code, Code::BadOption, "{operator}");
    }
}

#[test]
fn a_filter_of_a_column_that_selects_nothing_is_left_to_the_engine() {
    for column in ["value", "OFFSET", ""] {
        let filter = json!({ "column": column, "op": "=", "value": 1 });
        assert_eq!(query_with("filters", &filter).unwrap().exact_filters(), [false], "{column}");
    }
}

#[test]
fn other_aggregates_are_left_to_the_engine() {
    for (function, column) in [
        ("count", json!("offset")),
        ("min", json!("value")),
        ("max", json!(null)),
        ("sum", json!("offset")),
        ("Count", json!(null)),
        ("min", json!("partition")),
    ] {
        let aggregate = json!({ "function": function, "column": column });
        assert!(!query_with("aggregates", &aggregate).unwrap().can_aggregate(), "{function} {column}");
    }
    assert!(query_with("aggregates", &json!({ "function": "count" })).unwrap().can_aggregate());
}

proptest! {
    #![proptest_config(fixed_seed(200))]

    /// A subset of the columns in any order is a schema, and its columns are in that order.
    #[test]
    fn any_columns_are_a_schema(
        table in 0..TABLES.len() - 1,
        order in Just((0..22usize).collect::<Vec<_>>()).prop_shuffle(),
        count in 0usize..22,
    ) {
        let texts = TABLES[table];
        let schema = schema_of(texts);
        let fields = schema["fields"].as_array().unwrap();
        let chosen: Vec<Value> = order.iter().filter_map(|at| fields.get(*at)).take(count).cloned().collect();
        let schema = json!({ "type": "struct", "fields": chosen });
        let found: Value = serde_json::from_str(&read(texts, &schema).unwrap().schema_json()).unwrap();
        assert_eq!(found, schema);
    }

    #[test]
    fn random_text_is_an_error(text in ".{0,60}", json in r#"[{}\[\]":,a-z0-9 ]{0,60}"#) {
        for text in [&text, &json] {
            assert_eq!(Query::new(options(&[]), Some(text)).unwrap_err().code, Code::BadOption);
            assert_eq!(Query::from_json(text, &mut Vec::new()).unwrap_err().code, Code::BadOption);
        }
    }
}
