//! The proof of what hosts recorded: verification, replay, exports, seals of decisions and signatures of checkpoints. An auditor
//! may read this crate by itself, and run it beside a host or far from one.
//!
//! It uses `wrkflw-core` for the rules. It knows no database, no sandbox and no engine: it reads rows by the traits of
//! [`record`], and has questions of flow logic answered by [`replay::Logic`]. It writes nothing. Rows in, verdicts out.
//!
//! Begin with [`verify::Verifier`], which goes through all that there is, and says what is not as a host leaves it. [`replay`] runs
//! a recorded command again, from [`evidence`]. [`export`] carries a record away, and [`verify::file`] verifies it there.
//! [`seal`] and [`keys`] have the keys; hosts seal and sign with them, too.

pub mod evidence;
pub mod export;
pub mod keys;
pub mod record;
pub mod replay;
pub mod seal;
pub mod verify;
