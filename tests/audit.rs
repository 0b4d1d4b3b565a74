//! What the audit proves: its entries rebuild the instance, its chain shows every change, and its evidence is enough
//! to evaluate every command again. Decisions are sealed, and a verifier that reads rows alone names whatever was changed.
//!
//! `stream` reads an instance's entries as an auditor does, from the rows alone; `replay` runs commands again.

pub(crate) mod commands;
mod migrations;
mod proofs;
mod replay;
mod stream;
mod verify;

pub(crate) use commands::proven;
