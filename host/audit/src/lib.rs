//! The proof of what hosts recorded: verification, replay, exports, seals of decisions and signatures of checkpoints. An
//! auditor can read this crate by itself and run it without a host.
//!
//! It uses the rules of `wrkflw-core`. It depends on no database, sandbox or engine: it reads rows through the traits of
//! [`record`], and calls flow logic through [`replay::Logic`]. It writes nothing.
//!
//! Begin with [`verify::Verifier`], which reads all rows and reports what no host would have written. [`replay`] runs a
//! recorded command again, from its [`evidence`]. [`export`] writes a record to a file, and [`verify::file`] verifies that
//! file. [`seal`] and [`keys`] have the keys, with which hosts also seal and sign.

pub mod evidence;
pub mod export;
pub mod keys;
pub mod record;
pub mod replay;
pub mod seal;
pub mod verify;
