//! PostgreSQL, the only source of truth: every query of the host, and the only module that names `sqlx`.

pub mod outbox;
