//! The macro that declares the commands. One list generates each command's type, its stored form and the parser for it, its name
//! and its permission.

/// Declares the commands: each with its subject (`task`, `instance`, or nothing), its name in logs, metrics and the audit, and
/// the permission that it always needs.
macro_rules! commands {
    (
        $(#[$meta:meta])*
        pub enum Command {
            $(
                $(#[doc = $about:literal])*
                $variant:ident($($subject:ident)?) = $action:literal needs $permission:literal {
                    $(
                        $(#[doc = $of_field:literal])*
                        $(#[serde($($rule:tt)+)])?
                        $field:ident: $type:ty,
                    )*
                }
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        #[serde(tag = "action", rename_all_fields = "camelCase")]
        pub enum Command {
            $(
                $(#[doc = $about])*
                #[serde(rename = $action)]
                $variant {
                    $(
                        $(#[doc = $of_field])*
                        $(#[serde($($rule)+)])?
                        $field: $type,
                    )*
                },
            )*
        }

        /// The names of all commands.
        pub const ACTIONS: &[&str] = &[$($action),*];

        impl Command {
            /// Its declared name.
            fn declared_name(&self) -> &'static str {
                match self { $(Command::$variant { .. } => $action,)* }
            }

            /// The permission that it always needs. Flow logic may require more.
            pub fn permission(&self) -> &'static str {
                match self { $(Command::$variant { .. } => $permission,)* }
            }

            /// The task that it is about.
            pub fn task(&self) -> Option<TaskId> {
                match self {
                    $(Command::$variant { $($subject,)? .. } => commands!(@task $($subject $subject)?),)*
                }
            }

            /// The instance that it names; none for a start and for a command that names a task.
            pub fn instance(&self) -> Option<InstanceId> {
                match self {
                    $(Command::$variant { $($subject,)? .. } => commands!(@instance $($subject $subject)?),)*
                }
            }

            fn stored(text: &str) -> Result<Command, String> {
                let mut members = $crate::stored::Members::of(text)?;
                let action: String = members.take("action")?;
                let command = match action.as_str() {
                    $($action => Command::$variant {
                        $($field: $crate::declare::take!(members, $field, [$($($rule)+)?]),)*
                    },)*
                    _ => return Err(format!("{action} is no command of this host")),
                };
                members.finish()?;
                Ok(command)
            }
        }
    };
    (@task task $id:ident) => { Some(*$id) };
    (@task instance $id:ident) => {{ let _ = $id; None }};
    (@task) => { None };
    (@instance instance $id:ident) => { Some(*$id) };
    (@instance task $id:ident) => {{ let _ = $id; None }};
    (@instance) => { None };
}

pub(super) use commands;
