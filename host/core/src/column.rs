//! How the members of a record are stored in the columns of its table.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::ids::{ForkId, StateId};
use crate::instance::{ChildInstance, OpenDeadline};
use crate::json::Json;

/// The value of a column. Only values that may be null are optional.
#[derive(Debug, Clone, PartialEq)]
pub enum Column<'a> {
    Id(Uuid),
    Ids(Vec<Uuid>),
    Text(Option<&'a str>),
    Texts(&'a [String]),
    /// The canonical JSON of a list; null if it is empty.
    List(Option<String>),
    Time(Option<Timestamp>),
    Integer(i32),
    Small(i16),
    Boolean(bool),
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
                Column::List((!self.is_empty()).then(|| Json::of(self).to_string()))
            }

            fn of_stored(stored: Option<String>) -> Result<Self, serde_json::Error> {
                stored.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
            }
        })*
    };
}

lists!(OpenDeadline, ChildInstance);
