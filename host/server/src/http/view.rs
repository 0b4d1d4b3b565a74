//! Macros that declare how the API shows a row of the store or a result of the engine.

/// Declares a view: the members of a row under their own names, with descriptions for the API. A function after `=>` converts
/// a member. It does not compile if the view lacks a member of the row.
macro_rules! view {
    (@shown $member:ident) => { $member };
    (@shown $member:ident, $make:expr) => { $make($member) };
    (
        of $row:path;
        $(#[$meta:meta])*
        $vis:vis struct $view:ident {
            $($(#[$about:meta])* pub $member:ident: $type:ty $(=> $make:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        $vis struct $view {
            $($(#[$about])* pub $member: $type,)*
        }

        impl From<$row> for $view {
            fn from(row: $row) -> $view {
                let $row { $($member),* } = row;
                $view { $($member: $crate::http::view::view!(@shown $member $(, $make)?),)* }
            }
        }
    };
}

/// Declares the body of a request and its conversion to the engine's type. It does not compile unless both have the same members.
macro_rules! asked {
    (
        for $target:path;
        $(#[$meta:meta])*
        $vis:vis struct $body:ident {
            $($(#[$about:meta])* pub $member:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $vis struct $body {
            $($(#[$about])* pub $member: $type,)*
        }

        impl From<$body> for $target {
            fn from(body: $body) -> $target {
                let $body { $($member),* } = body;
                $target { $($member: $member.into()),* }
            }
        }
    };
}

pub(super) use asked;
pub(super) use view;

/// The view of an optional row.
pub(super) fn maybe<R, V: From<R>>(row: Option<R>) -> Option<V> {
    row.map(V::from)
}

/// The view of each row.
pub(super) fn each<R, V: From<R>>(rows: Vec<R>) -> Vec<V> {
    rows.into_iter().map(V::from).collect()
}
