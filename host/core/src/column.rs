//! How the members of a record are stored in the columns of its table.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::answer::{Share, SignalSubscription};
use crate::ids::{ForkId, StateId, TaskId};
use crate::instance::{Candidate, ChildInstance, OpenCall, OpenDeadline, Ownership, Suspension};
use crate::json::Json;

/// The value of a column. Only values that may be null are optional.
#[derive(Debug, Clone, PartialEq)]
pub enum Column<'a> {
    Id(Uuid),
    Ids(Vec<Uuid>),
    Text(Option<&'a str>),
    Texts(&'a [String]),
    /// Canonical JSON; null for an empty list and for the default of a record.
    Json(Option<String>),
    Time(Option<Timestamp>),
    Integer(i32),
    Small(i16),
    Boolean(bool),
}

/// A row as an object of its columns, as PostgreSQL's JSON functions write it.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Row<'a>(#[serde(borrow)] BTreeMap<&'a str, &'a RawValue>);

impl<'a> Row<'a> {
    pub fn parse(text: &'a str) -> Result<Row<'a>, serde_json::Error> {
        serde_json::from_str(text).map(Row)
    }

    /// A value as it is in the row. Errors name the column.
    pub fn value<T: Deserialize<'a>>(&self, column: &str) -> Result<T, serde_json::Error> {
        let Some(value) = self.0.get(column) else {
            return Err(serde_json::Error::custom(format!(
                "there is no column `{column}`"
            )));
        };
        serde_json::from_str(value.get()).map_err(|error| of_column(column, &error))
    }

    /// The member that a column holds.
    pub fn member<T: ColumnType>(&self, column: &str) -> Result<T, serde_json::Error> {
        let stored = self.value(column)?;
        T::of_stored(stored).map_err(|error| of_column(column, &error))
    }
}

fn of_column(column: &str, error: &serde_json::Error) -> serde_json::Error {
    serde_json::Error::custom(format!("column `{column}`: {error}"))
}

/// A type of members that are stored in columns.
pub trait ColumnType: Sized {
    /// The column in a row that PostgreSQL's JSON functions write.
    type Stored: DeserializeOwned;

    fn column(&self) -> Column<'_>;

    fn of_stored(stored: Self::Stored) -> Result<Self, serde_json::Error>;
}

/// Declares the types whose JSON in a row is the same as in a record.
macro_rules! plain {
    ($($type:ty: $value:ident => $column:expr;)*) => {
        $(impl ColumnType for $type {
            type Stored = $type;

            fn column(&self) -> Column<'_> {
                let $value = self;
                $column
            }

            fn of_stored(stored: $type) -> Result<$type, serde_json::Error> {
                Ok(stored)
            }
        })*
    };
}

plain! {
    StateId: id => Column::Id(id.0);
    TaskId: id => Column::Id(id.0);
    Vec<StateId>: ids => Column::Ids(ids.iter().map(|id| id.0).collect());
    Vec<ForkId>: ids => Column::Ids(ids.iter().map(|id| id.0).collect());
    String: text => Column::Text(Some(text));
    Option<String>: text => Column::Text(text.as_deref());
    Vec<String>: texts => Column::Texts(texts);
    Timestamp: at => Column::Time(Some(*at));
    Option<Timestamp>: at => Column::Time(*at);
    u32: count => Column::Integer(count.cast_signed());
    u8: count => Column::Small((*count).into());
    bool: is_set => Column::Boolean(*is_set);
}

/// Declares the types whose lists are stored as JSON text in one column.
macro_rules! lists {
    ($($type:ty),*) => {
        $(impl ColumnType for Vec<$type> {
            type Stored = Option<String>;

            fn column(&self) -> Column<'_> {
                Column::Json((!self.is_empty()).then(|| Json::of(self).to_string()))
            }

            fn of_stored(stored: Option<String>) -> Result<Self, serde_json::Error> {
                stored.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
            }
        })*
    };
}

lists!(OpenDeadline, ChildInstance, SignalSubscription);

/// Declares the types that a column holds as JSON text, with the functions that make and read the text.
macro_rules! texts {
    ($($type:ty as $stored:ty: $value:ident => $column:expr, $text:ident => $read:expr;)*) => {
        $(impl ColumnType for $type {
            type Stored = $stored;

            fn column(&self) -> Column<'_> {
                let $value = self;
                $column
            }

            fn of_stored($text: $stored) -> Result<$type, serde_json::Error> {
                $read
            }
        })*
    };
}

texts! {
    Json as String: json => Column::Text(Some(json.as_str())), text => Ok(Json::from_canonical(text));
    Option<Json> as Option<String>:
        json => Column::Text(json.as_ref().map(Json::as_str)), text => Ok(text.map(Json::from_canonical));
    Option<Share> as Option<String>:
        share => Column::Json(share.map(|share| Json::of(&share).to_string())),
        text => text.map(|text| serde_json::from_str(&text)).transpose();
    // Never null, unlike other lists: an empty list is written as an empty array.
    Vec<Candidate> as String:
        candidates => Column::Json(Some(Json::of(candidates).to_string())), text => serde_json::from_str(&text);
    Option<OpenCall> as Option<String>:
        call => Column::Json(call.as_ref().map(|one| Json::of(one).to_string())),
        text => text.map(|text| serde_json::from_str(&text)).transpose();
    Option<Suspension> as Option<String>:
        suspended => Column::Json(suspended.as_ref().map(|one| Json::of(one).to_string())),
        text => text.map(|text| serde_json::from_str(&text)).transpose();
    Ownership as Option<String>:
        ownership => Column::Json((!ownership.is_plain()).then(|| Json::of(ownership).to_string())),
        text => text.map_or(Ok(Ownership::default()), |text| serde_json::from_str(&text));
}
