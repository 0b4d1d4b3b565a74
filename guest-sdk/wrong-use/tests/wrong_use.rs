//! What an author reads who uses the SDK wrongly: one file each in `wrong/`, the message beside it.
//!
//! After a change of toolchain or message, `TRYBUILD=overwrite` writes the messages anew; read
//! them before committing.

#[test]
fn wrong_use_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/wrong/*.rs");
}
