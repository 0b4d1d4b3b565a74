//! What the audit proves: its entries rebuild the instance, its chain shows every change, and its evidence is enough
//! to evaluate every command again. Decisions are sealed, and a verifier that reads rows alone names whatever was changed.
//!
//! `checkpoints` are what others can keep of it; `tampering` changes every column of every table of it,
//! and `columns` those of all tables that entries give.
//! `stream` reads an instance's entries as an auditor does, from the rows alone; `replay` runs commands again.

pub(crate) mod checkpoints;
mod columns;
pub(crate) mod commands;
mod export;
mod held;
mod history;
mod migrations;
mod proofs;
mod replay;
mod replays;
mod stream;
mod tampering;
pub(crate) mod verify;

pub(crate) use commands::proven;
pub(crate) use verify::everything;
