//! What the audit proves: its entries rebuild the instance, its chain shows every change, and its evidence suffices to evaluate
//! every command again. Decisions are sealed. A verifier that reads only rows names every change.
//!
//! `checkpoints` tests what others can keep of the audit. `tampering` changes every column of every table of the audit, and
//! `columns` those of all tables that entries determine. `stream` reads an instance's entries from the rows alone, like an
//! auditor; `replay` executes commands again.

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
