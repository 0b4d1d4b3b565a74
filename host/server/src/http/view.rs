//! What the API shows of a row of the store, or of a result of the engine, declared once.

/// Declares a view: a row's members under their own names, with what the API says of them. A member may be made from the
/// row's by a function, which stands behind `=>`. A member that the row has and the view has not does not compile.
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

/// Declares the body of a request and its conversion to the engine's type. Both have the same members, or it does not compile.
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

/// What is shown of a row that may not be there.
pub(super) fn maybe<R, V: From<R>>(row: Option<R>) -> Option<V> {
    row.map(V::from)
}

/// What is shown of each row.
pub(super) fn each<R, V: From<R>>(rows: Vec<R>) -> Vec<V> {
    rows.into_iter().map(V::from).collect()
}
