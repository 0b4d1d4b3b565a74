//! Settings of a flow with their defaults.

use serde::Deserialize;

/// Declares the settings of a flow, each with its default: `config! { pub struct Config { limit: u32 = 5 } }`.
/// In JSON the names are in camel case, each may be left out, and unknown ones are refused. For required settings, write a struct
/// that derives `Deserialize` instead.
#[macro_export]
macro_rules! config {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$note:meta])* $field_vis:vis $field:ident: $type:ty = $default:expr),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, $crate::plumbing::serde::Deserialize)]
        #[serde(crate = "wrkflw_guest::plumbing::serde")]
        #[serde(default, deny_unknown_fields, rename_all = "camelCase")]
        $vis struct $name { $($(#[$note])* $field_vis $field: $type),+ }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::plumbing::Setting::<$type>::value($default)),+ }
            }
        }
    };
}

/// A default: the literal of a text, or any other expression.
pub trait Setting<T> {
    /// The value of the setting.
    fn value(self) -> T;
}

impl<T> Setting<T> for T {
    fn value(self) -> T {
        self
    }
}

impl Setting<String> for &str {
    fn value(self) -> String {
        self.into()
    }
}

/// For flows without settings: any key is refused.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}
