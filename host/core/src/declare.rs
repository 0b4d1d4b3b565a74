//! The macros that declare records, and the parts that they share with the macros for [events](crate::event) and
//! [commands](crate::command).

/// Takes the member of a field from the members of a stored event or command. A member with a `#[serde(...)]` rule may be
/// absent.
macro_rules! take {
    ($members:ident, $field:ident, []) => {
        $members.take(stringify!($field))?
    };
    ($members:ident, $field:ident, [$($rule:tt)+]) => {
        $members.take_or_default(stringify!($field))?
    };
}

/// The schema of a member for consumers; none if it is not public.
macro_rules! member {
    ([] $($rest:tt)*) => { None };
    ([$name:literal $(, $shape:ident)?] $field:ident: $type:ty, [$($rule:tt)*], $about:expr) => {
        Some($crate::event_schema::Member::new(
            ($crate::declare::member!(@stored $field [$($rule)*]), $name),
            $crate::declare::member!(@shape $type $(, $shape)?),
            $crate::declare::member!(@presence $type [$($rule)*]),
            $about,
        ))
    };
    (@stored $field:ident [rename = $stored:literal]) => { $stored };
    (@stored $field:ident [$($rule:tt)*]) => { stringify!($field) };
    (@shape $type:ty) => { <$type as $crate::event_schema::MemberType>::SHAPE };
    (@shape $type:ty, $shape:ident) => { $crate::event_schema::Shape::$shape };
    (@presence $type:ty [skip_serializing_if $($rest:tt)*]) => { $crate::event_schema::Presence::Sometimes };
    (@presence $type:ty [$($rule:tt)*]) => { <$type as $crate::event_schema::MemberType>::PRESENCE };
}

/// Declares a record: its type, its JSON in camel case, its schema for consumers with the documentation of its public
/// members, and its columns if it has a table. Consumers see a member only if it has `#[public("name")]`, under that name. One
/// with `#[serde(skip_serializing_if = ...)]` may be absent.
///
/// `columns` has the members that are columns of its row, under the same names. `besides` has the members that are stored
/// elsewhere. Add a new column at the end, as in the composite type that is used to write rows. For example:
///
/// ```ignore
/// record! {
///     /// A remark on an instance.
///     #[derive(Eq)]
///     pub struct Remark {
///         columns {
///             /// When it was made.
///             #[public("madeAt")]
///             pub made_at: Timestamp,
///             /// Who made it.
///             #[serde(skip_serializing_if = "Option::is_none", default)]
///             pub author: Option<String>,
///         }
///         besides {
///             /// Answers, each with a row of its own.
///             pub answers: Vec<Answer>,
///         }
///     }
/// }
/// ```
///
/// declares the struct `Remark` with its three members, `<Remark as MemberType>::SHAPE`, `Remark::COLUMNS` with the names
/// `made_at` and `author`, `remark.columns()` with their values, and `Remark::of_row(&row, answers)`.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $record:ident {
            columns { $($columns:tt)* }
            besides { $($besides:tt)* }
        }
    ) => {
        $crate::declare::record! {
            $(#[$meta])*
            pub struct $record { $($columns)* $($besides)* }
        }
        $crate::declare::columns! { $record { $($columns)* } { $($besides)* } }
    };
    (
        $(#[$meta:meta])*
        pub struct $record:ident {
            $(
                $(#[doc = $about:literal])+
                $(#[public($name:literal $(, $shape:ident)?)])?
                $(#[serde($($rule:tt)+)])?
                pub $field:ident: $type:ty,
            )*
        }
    ) => {
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        $(#[$meta])*
        pub struct $record {
            $(
                $(#[doc = $about])+
                $(#[serde($($rule)+)])?
                pub $field: $type,
            )*
        }

        impl $crate::event_schema::MemberType for $record {
            const SHAPE: $crate::event_schema::Shape = $crate::event_schema::Shape::Record(&[
                $($crate::declare::member!(
                    [$($name $(, $shape)?)?] $field: $type, [$($($rule)+)?], concat!($($about),+)
                ),)*
            ]);
        }
    };
}

/// Declares the columns of a record. [`record!`] uses it.
macro_rules! columns {
    (
        $record:ident
        { $($(#[$of_column:meta])* pub $column:ident: $type:ty,)* }
        { $($(#[$of_other:meta])* pub $other:ident: $other_type:ty,)* }
    ) => {
        impl $record {
            /// The columns of its table that hold it.
            pub const COLUMNS: &[&str] = &[$(stringify!($column)),*];

            /// The values of [`COLUMNS`](Self::COLUMNS), in the same order.
            pub fn columns(&self) -> Vec<$crate::column::Column<'_>> {
                vec![$($crate::column::ColumnType::column(&self.$column)),*]
            }

            /// The columns whose members another record has with other values.
            pub fn changed_columns(&self, other: &$record) -> impl Iterator<Item = &'static str> {
                let compared = [$((stringify!($column), self.$column != other.$column)),*];
                let changed = compared.into_iter().filter(|(_, is_changed)| *is_changed);
                changed.map(|(column, _)| column)
            }

            /// Reads the record from a row. The caller passes the members that the row does not hold.
            pub fn of_row(
                row: &$crate::column::Row<'_>,
                $($other: $other_type),*
            ) -> Result<$record, serde_json::Error> {
                Ok($record {
                    $($column: row.member(stringify!($column))?,)*
                    $($other,)*
                })
            }
        }
    };
}

pub(crate) use {columns, member, record, take};
